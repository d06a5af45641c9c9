"""All-reduce over the GPUs of a machine by NCCL: one process a GPU, this one is the first.

The other processes wait for sizes and take part; the times are of this process's GPU, whose stream is held
back by a barrier until all have come.
"""

from __future__ import annotations

import os
import socket
from typing import Any

from sim.calibrate.meter import RefusedError

TOGETHER = 20
"""All-reduces that are timed together."""


class Ring:
    """GPUs that add up vectors until closed."""

    def __init__(self, gpus: int) -> None:
        import torch  # noqa: PLC0415

        if torch.cuda.device_count() < gpus:
            raise RefusedError(f"an all-reduce over {gpus} GPUs, and there are {torch.cuda.device_count()}")
        self.gpus = gpus
        os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(free_port())
        context = torch.multiprocessing.get_context("spawn")
        self._orders = [context.Queue() for _ in range(gpus - 1)]
        self._others = [
            context.Process(target=follow, args=(rank, gpus, orders), daemon=True)
            for rank, orders in enumerate(self._orders, start=1)
        ]
        for other in self._others:
            other.start()
        enter(0, gpus)

    def seconds(self, size_bytes: int) -> float:
        """Mean time of one all-reduce of so many bytes in bf16, of several in a row."""
        for orders in self._orders:
            orders.put(size_bytes)
        return reduced_s(size_bytes)

    def close(self) -> None:
        """End the other processes."""
        import torch.distributed as dist  # noqa: PLC0415

        for orders in self._orders:
            orders.put(None)
        for other in self._others:
            other.join(timeout=20)
        dist.destroy_process_group()


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def enter(rank: int, gpus: int) -> None:
    """Join the group as one of its processes."""
    import torch  # noqa: PLC0415
    import torch.distributed as dist  # noqa: PLC0415

    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=gpus, device_id=torch.device("cuda", rank))


def follow(rank: int, gpus: int, orders: Any) -> None:
    """Take part in every all-reduce that is ordered, until None is."""
    enter(rank, gpus)
    while (size_bytes := orders.get()) is not None:
        reduced_s(size_bytes)


def reduced_s(size_bytes: int) -> float:
    """Do it on this process's GPU, and return the mean seconds of one."""
    import torch  # noqa: PLC0415
    import torch.distributed as dist  # noqa: PLC0415

    vector = torch.zeros(size_bytes // 2, dtype=torch.bfloat16, device="cuda")
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    dist.barrier()
    dist.all_reduce(vector)  # brings the GPUs into step
    begin.record()
    for _ in range(TOGETHER):
        dist.all_reduce(vector)
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) / 1e3 / TOGETHER
