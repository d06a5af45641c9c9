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
    from sim.serving.routers import router

_HOME = {
    "check": "sim.api",
    "load": "sim.api",
    "open_run": "sim.api",
    "router": "sim.serving.routers",
    "run": "sim.api",
}

__all__ = ["check", "load", "open_run", "router", "run"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sim' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
