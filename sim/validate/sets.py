"""The sets by name, each with the file that it takes when none is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from sim.base.errors import UnsupportedError
from sim.base.registry import Registry
from sim.validate.comparison import Comparisons
from sim.validate.devices import measured
from sim.validate.published import published
from sim.validate.servedh200 import served_h200
from sim.validate.silicon import silicon
from sim.validate.theory import theory

DATA = Path(__file__).parent / "data"
Make = Callable[[Path | None], Comparisons]
sets: Registry[Make] = Registry("set")
ORDER = ("measured", "silicon", "published", "theory")


@sets("measured")
def _measured(data: Path | None) -> Comparisons:
    """Kernels, copies, whole steps and served requests on an H200, of this project."""
    found = measured(data)
    return found if data is not None else replace(found, rows=(*found.rows, *served_h200(DATA)))


@sets("silicon")
def _silicon(data: Path | None) -> Comparisons:
    """Runs of one replica at a fixed concurrency: TTFT and TPOT."""
    return silicon(data or DATA / "silicon.csv")


@sets("published")
def _published(data: Path | None) -> Comparisons:
    """What others published: throughputs, latencies, rates of links."""
    return published(data or DATA / "published.csv")


@sets("theory")
def _theory(data: Path | None) -> Comparisons:
    """Closed forms that the simulator has to equal."""
    if data is not None:
        raise UnsupportedError("the set theory takes no data", "one of the other sets")
    return theory(DATA / "queue.yaml")


def compared(name: str, data: Path | None = None) -> Comparisons:
    """One set, from its own data or a file."""
    return sets[name](data)
