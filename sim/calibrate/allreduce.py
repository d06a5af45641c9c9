"""All-reduce over the GPUs of a machine by NCCL: one process a GPU, this one is the first.

Model: every process captures a CUDA graph of several all-reduces in a row, as a step of an engine has them;
after a barrier it replays the graph twice, of which the second is timed. The other processes wait for sizes
and take part; the times are of this process's GPU. Ignores: kernels that engines write for small vectors,
which are faster than NCCL there.
"""

from __future__ import annotations

import os
import socket
from typing import Any

from sim.calibrate.meter import RefusedError

TOGETHER = 20
"""All-reduces in a graph."""


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
        self._member = Member(0, gpus)

    def seconds(self, size_bytes: int) -> float:
        """Mean time of one all-reduce of so many bytes in bf16, of several in a row."""
        for orders in self._orders:
            orders.put(size_bytes)
        return self._member.seconds(size_bytes)

    def close(self) -> None:
        """End the other processes."""
        for orders in self._orders:
            orders.put(None)
        self._member.leave()
        for other in self._others:
            other.join(timeout=20)


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def follow(rank: int, gpus: int, orders: Any) -> None:
    """Take part in every all-reduce that is ordered, until None is."""
    member = Member(rank, gpus)
    while (size_bytes := orders.get()) is not None:
        member.seconds(size_bytes)
    member.leave()


class Member:
    """One process of the group, on its own GPU; keeps the graph of the size that it did last."""

    def __init__(self, rank: int, gpus: int) -> None:
        import torch  # noqa: PLC0415
        import torch.distributed as dist  # noqa: PLC0415

        torch.cuda.set_device(rank)
        dist.init_process_group("nccl", rank=rank, world_size=gpus, device_id=torch.device("cuda", rank))
        self._torch, self._dist = torch, dist
        self._graphs: dict[int, tuple[Any, Any]] = {}

    def seconds(self, size_bytes: int) -> float:
        """Do it on this process's GPU, and return the mean seconds of one."""
        torch = self._torch
        if size_bytes not in self._graphs:
            self._graphs = {size_bytes: self._captured(size_bytes)}
        graph, _ = self._graphs[size_bytes]
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self._dist.barrier()
        graph.replay()  # brings the GPUs into step
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1e3 / TOGETHER

    def _captured(self, size_bytes: int) -> tuple[Any, Any]:
        torch = self._torch
        vector = torch.zeros(size_bytes // 2, dtype=torch.bfloat16, device="cuda")
        self._dist.all_reduce(vector)  # sets up what NCCL needs for this size
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        # NCCL's own thread may look at events meanwhile, which must not break the capture.
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            for _ in range(TOGETHER):
                self._dist.all_reduce(vector)
        return graph, vector

    def leave(self) -> None:
        """Leave the group."""
        self._graphs = {}
        self._dist.destroy_process_group()
