"""A cluster-scale discrete-event simulator of disaggregated LLM serving.

    import sim

    scenario = sim.load("scenarios/hello.yaml")
    run = sim.run(scenario)
    print(run)                       # verdict and latency table
    run.requests.ttft_s.quantile(0.9)
    busier = scenario.replace({"workload.arrivals.rate": "40 req/s"})

The names below are imported when they are first used, so that the command line starts at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sim.api import check, load, open_run, run
    from sim.report.poolsize import draw_pool_sizes
    from sim.results.memorycost import MemoryPrice
    from sim.results.poolsize import pool_sizes
    from sim.serving.routers import router
    from sim.whatif.compare import compare
    from sim.whatif.sweep import sweep

_HOME = {
    "MemoryPrice": "sim.results.memorycost",
    "check": "sim.api",
    "compare": "sim.whatif.compare",
    "draw_pool_sizes": "sim.report.poolsize",
    "load": "sim.api",
    "open_run": "sim.api",
    "pool_sizes": "sim.results.poolsize",
    "router": "sim.serving.routers",
    "run": "sim.api",
    "sweep": "sim.whatif.sweep",
}

__all__ = [
    "MemoryPrice",
    "check",
    "compare",
    "draw_pool_sizes",
    "load",
    "open_run",
    "pool_sizes",
    "router",
    "run",
    "sweep",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sim' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
