"""The meter of torch: CUDA graphs timed by CUDA events, on the first GPU of the machine.

Model: a graph of a case is captured after a few plain launches and replayed between two events; the GPU is
kept busy until both events and the graph are in its queue, so that the host is not measured. Clocks and power
are left as they are found. Ignores: what a step costs on the host; engines add that.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sim.base.errors import SimError, UnsupportedError
from sim.calibrate.allreduce import Ring
from sim.calibrate.cases import AllReduceCase, Case, StepCase, StepSet
from sim.calibrate.llama import Llama
from sim.calibrate.meter import Facts, Reading, RefusedError
from sim.calibrate.sizes import MOST_STEP_TOKENS
from sim.calibrate.smi import Watch, described
from sim.calibrate.works import Work, work

PLAIN_LAUNCHES = 2
SPIN_CYCLES = 200_000  # a tenth of a millisecond: as long as it takes to queue a graph
LAUNCH_CYCLES = 20_000  # ten microseconds: longer than it takes to queue a copy
ACTIVATION_BYTES = 16 * 10**9
SPARE_PAGES = 1024
PREVIEW = "--dry-run shows what would be measured"
INSTALL = f"pip install 'kvfabric[gpu]' on a machine with an NVIDIA GPU; {PREVIEW}"


def gpu_torch() -> Any:
    """Torch with a GPU of NVIDIA, or the remedy."""
    try:
        import torch  # noqa: PLC0415
    except ImportError:
        raise UnsupportedError("measuring needs torch, which is not installed here", INSTALL) from None
    if not torch.cuda.is_available() or torch.version.cuda is None:
        built = f"torch {torch.__version__}"
        raise UnsupportedError(
            f"{built} sees no NVIDIA GPU here",
            f"a machine on which `nvidia-smi` lists one, and a torch built for CUDA; {PREVIEW}",
        )
    return torch


class TorchMeter:
    """Measures on the GPU until closed."""

    def __init__(self) -> None:
        self.torch = gpu_torch()
        self._watch = Watch()
        self._model: Llama | None = None
        self._ring: Ring | None = None

    def close(self) -> None:
        """Let go of everything in the background."""
        self._watch.close()
        if self._ring is not None:
            self._ring.close()

    def readings(self) -> list[Reading]:
        """What the driver said since it was last asked."""
        return self._watch.taken()

    def facts(self) -> Facts:
        """Describe the machine."""
        torch = self.torch
        properties = torch.cuda.get_device_properties(0)
        said = described()
        versions = {
            "driver": said.get("driver_version", "unknown"),
            "torch": str(torch.__version__),
            "cuda": str(torch.version.cuda),
            "cudnn": str(torch.backends.cudnn.version()),
            "python": sys.version.split()[0],
        }
        try:
            import triton  # noqa: PLC0415

            versions["triton"] = str(triton.__version__)
        except ImportError:
            pass
        return Facts(
            gpu=properties.name,
            gpus=torch.cuda.device_count(),
            memory_bytes=properties.total_memory,
            multiprocessors=properties.multi_processor_count,
            sm_clock_mhz=_whole(said.get("clocks.max.sm")),
            memory_clock_mhz=_whole(said.get("clocks.max.memory")),
            power_limit_w=float(said["power.limit"]) if "power.limit" in said else None,
            software=versions,
        )

    @contextmanager
    def prepared(self, case: Case) -> Iterator[Callable[[], float]]:
        """Set a case up for timing; whatever goes wrong in it is a refusal."""
        torch = self.torch
        try:
            if isinstance(case, AllReduceCase):
                yield self._reduced(case)
            else:
                yield self._timed(work(case, self._model_of(case)))
        except SimError:
            raise
        except Exception as trouble:  # whatever a library thinks of: the other cases go on
            reason = str(trouble).strip().partition("\n")[0]
            raise RefusedError(f"{type(trouble).__name__}: {reason}") from trouble
        finally:
            torch.cuda.synchronize()
            if torch.cuda.memory_reserved() > torch.cuda.get_device_properties(0).total_memory // 2:
                torch.cuda.empty_cache()

    def _model_of(self, case: Case) -> Llama | None:
        """The model of a step's set, loaded once; other cases get its memory back."""
        of = case.of if isinstance(case, StepCase) else None
        if self._model is not None and self._model.of != of:
            self._model = None
            self.torch.cuda.empty_cache()
        if of is not None and self._model is None:
            self._model = self._loaded(of)
        return self._model

    def _loaded(self, of: StepSet) -> Llama:
        torch = self.torch
        torch.cuda.empty_cache()
        free, _ = torch.cuda.mem_get_info()
        left = free - of.shape.matrix_bytes(of.weights) - ACTIVATION_BYTES
        wanted = MOST_STEP_TOKENS + SPARE_PAGES * of.page_tokens
        tokens = min(wanted, int(left // of.shape.kv_token_bytes(of.kv)))
        if tokens < of.page_tokens:
            raise RefusedError(f"{of.name} does not fit the {free / 1e9:.0f} GB that are free")
        torch.manual_seed(1)
        return Llama(of, tokens)

    def _timed(self, job: Work) -> Callable[[], float]:
        torch = self.torch
        launch = self._captured(job.launch) if job.is_captured else job.launch
        cycles = SPIN_CYCLES if job.is_captured else SPIN_CYCLES + job.launches * LAUNCH_CYCLES
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

        def once() -> float:
            torch.cuda._sleep(cycles)
            begin.record()
            launch()
            end.record()
            end.synchronize()
            return float(begin.elapsed_time(end)) / 1e3 / job.launches

        return once

    def _captured(self, launch: Callable[[], object]) -> Callable[[], object]:
        """A CUDA graph of some launches, captured once their libraries are warm."""
        torch = self.torch
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(PLAIN_LAUNCHES):
                launch()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            launch()
        replay: Callable[[], object] = graph.replay
        return replay

    def _reduced(self, case: AllReduceCase) -> Callable[[], float]:
        if self._ring is None or self._ring.gpus != case.gpus:
            self._ring = Ring(case.gpus)
        ring = self._ring
        return lambda: ring.seconds(case.bytes)


def _whole(text: str | None) -> int | None:
    return round(float(text)) if text is not None else None
