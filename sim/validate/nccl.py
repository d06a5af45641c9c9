"""The all-reduce that NCCL's tests and torch measure: NCCL's own, not the custom kernels of engines.

Model: inside a domain NCCL's table of the link where it has one for so many GPUs; else, and over domains,
what replicas are timed with (sim.timing.collective), which over domains is NCCL's as well.
Ignores: what a host takes to launch it, which short ones measured from Python contain.
"""

from __future__ import annotations

from sim.catalog.link import Link
from sim.catalog.load import load_catalog
from sim.timing.collective import Collective, Table, Wire, collective


def by_nccl(link: Link, gpus: int, wire: Wire | None = None) -> Collective:
    """The all-reduce among so many GPUs of each domain."""
    points = link.nccl_all_reduce.get(gpus)
    if wire is None and points is not None:
        return Collective(gpus, link, Table(link, gpus, points))
    return collective(load_catalog(), link, gpus, wire)
