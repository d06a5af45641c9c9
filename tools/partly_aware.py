"""A router for tools/mooncake_fast25.py: a share of prompts, `load_weight`, is routed by the caches.

For these it takes the least estimated TTFT, as router `conductor` does; the others go to the least loaded.
"""

from __future__ import annotations

from sim.serving.routers import View
from sim.workload.request import Request


def choose(request: Request, view: View) -> int:
    """The number of a replica."""
    estimates = view.ahead(request)
    is_aware = view.dice.random() < view.load_weight
    return estimates.best() if estimates is not None and is_aware else view.loads.least()
