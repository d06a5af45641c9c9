"""The links of a cluster by place, made when they are first asked for, each with what the solver needs.

Rates in bytes per second for people, in bytes per picosecond for the solver; one direction each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from sim.network.maxmin import Link
from sim.network.path import Cap, Path
from sim.tables.schema import PS_PER_S
from sim.tables.uses import NOWHERE, Ends

Place = tuple[str, *tuple[int, ...]]
"""What a link is and where: its kind, and numbers that make sense for the kind."""

NEVER = 1 + 1e-12
"""A link holds nobody back where all that can reach it exceeds its capacity by no more than rounding."""


@dataclass(slots=True)
class FabricLink:
    """A link by name, kind and ends: what it carries, and whether what can reach it is more than that.

    `is_cap` tells the caps of single flows, which are on no way and count no bytes; each flow has all of
    the capacity for itself.
    """

    name: str
    kind: str
    capacity_bytes_per_s: float
    can_saturate: bool
    ends: Ends = NOWHERE
    is_cap: bool = False


class Links:
    """All links so far, numbered in the order in which they were made; `carried` counts bytes."""

    def __init__(self) -> None:
        self.described: list[FabricLink] = []
        self.carried: list[float] = []
        self.solver: list[Link] = []
        self._ids: dict[Place, int] = {}

    def get(self, place: Place) -> int | None:
        """The number of the link at a place, if it has been made."""
        return self._ids.get(place)

    def make(
        self, place: Place, name: str, capacity: float, ends: Ends = NOWHERE, reach: float = float("inf")
    ) -> int:
        """The number of the link at a place, made if need be; rates in bytes per second."""
        number = self._ids.get(place)
        if number is None:
            number = self._ids[place] = len(self.described)
            self.described.append(FabricLink(name, place[0], capacity, reach > capacity * NEVER, ends))
            self.solver.append(Link(number, capacity / PS_PER_S))
            self.carried.append(0.0)
        return number

    def cap(self, kind: str, name: str, rate: float) -> Cap:
        """What caps each flow of some kind at a rate, under one number for all of the same rate."""
        number = self.make((kind, round(rate)) if isfinite(rate) else (kind,), name, rate)
        self.described[number].is_cap = True
        return Cap(number, rate / PS_PER_S)

    def path(self, numbers: Sequence[int], latency_ps: int, cap: Cap | None = None) -> Path:
        """A path over links; those that cannot saturate hold nobody back and are only counted."""
        described, solver = self.described, self.solver
        held_by = tuple([solver[i] for i in numbers if described[i].can_saturate])
        return Path(held_by, tuple(numbers), latency_ps, cap)
