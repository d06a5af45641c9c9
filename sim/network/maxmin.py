"""Max-min fair rates of flows on links, kept exact as flows come and go.

Model: a flow has one rate on all links of its path. Rates are max-min fair: no flow can get more without
taking from one that has no more than it. Equivalently, every flow has a *bottleneck*: a saturated link
on which no flow is faster (Bertsekas and Gallager, Data Networks, 6.5.2). That characterisation is what
keeps updates small. After a change only flows whose bottleneck it touched are rated again, the others
held; whoever then lacks a bottleneck is drawn in, until everyone has one. The result is unique, so it
equals a full recomputation.

Units: capacities and rates in bytes per picosecond.
Ignores: everything that takes time to converge in a real fabric (slow start, pauses, incast collapse).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, TypeVar

SLACK = 1e-12
"""Relative difference under which two rates, or a load and a capacity, count as equal."""


class Link:
    """A capacity in one direction, the flows on it, and those of them that it holds back."""

    __slots__ = ("capacity", "flows", "held", "id")

    def __init__(self, id: int, capacity: float) -> None:
        self.id = id
        self.capacity = capacity
        self.flows: dict[Any, None] = {}
        self.held: dict[Any, None] = {}


class Rated:
    """A flow as the solver sees it: its links, its rate, and the link that holds it back."""

    __slots__ = ("bottleneck", "links", "rate")

    def __init__(self, links: tuple[Link, ...]) -> None:
        self.links = links
        self.rate = 0.0
        self.bottleneck: Link | None = None


F = TypeVar("F", bound=Rated)


class MaxMin(Generic[F]):
    """The rates of all present flows.

    `add` and `remove` return the flows whose rate changed, with their old rates; a path needs at least
    one link.
    """

    def add(self, flow: F) -> dict[F, float]:
        """Let a flow in, and rate again whoever has to make room."""
        affected: dict[F, None] = {flow: None}
        alone = True
        tightest = flow.links[0]
        for link in flow.links:
            if link.flows:
                alone = False
                affected.update(link.held)
            elif link.capacity < tightest.capacity:
                tightest = link
            link.flows[flow] = None
        if alone:
            flow.bottleneck = tightest
            flow.rate = tightest.capacity
            tightest.held[flow] = None
            return {flow: 0.0}
        return self._rate_again(affected, {})

    def remove(self, flow: F) -> dict[F, float]:
        """Let a flow out, and rate again whoever it had held back."""
        touched: dict[Link, None] = {}
        for link in flow.links:
            del link.flows[flow]
            if link.flows:
                touched[link] = None
        assert flow.bottleneck is not None
        del flow.bottleneck.held[flow]
        flow.bottleneck = None
        affected: dict[F, None] = {}
        for link in touched:
            affected.update(link.held)
        return self._rate_again(affected, touched) if affected else {}

    def _rate_again(self, affected: dict[F, None], touched: dict[Link, None]) -> dict[F, float]:
        """Rate the affected flows against the others held, drawing in more until all have a bottleneck."""
        before: dict[F, float] = {}
        fresh: Iterable[F] = affected
        while fresh:
            for flow in fresh:
                before[flow] = flow.rate
                for link in flow.links:
                    touched[link] = None
            fill(affected, touched)
            fresh = self._without_bottleneck(affected, touched)
            affected.update(dict.fromkeys(fresh))
        return {flow: rate for flow, rate in before.items() if flow.rate != rate}

    @staticmethod
    def _without_bottleneck(affected: dict[F, None], touched: dict[Link, None]) -> list[F]:
        """Flows outside `affected` that must be rated again: they, or one inside, lack a bottleneck."""
        drawn: dict[F, None] = {}
        for link in touched:
            fastest_here = 0.0  # of the affected flows that this link holds back
            outside_held = []
            for flow in link.held:
                if flow in affected:
                    fastest_here = max(fastest_here, flow.rate)
                else:
                    outside_held.append(flow)
            if fastest_here > 0.0 or any(flow in affected for flow in link.held):
                limit = fastest_here * (1 + SLACK)
                for flow in link.flows:
                    if flow.rate > limit and flow not in affected:
                        drawn[flow] = None
            if outside_held:
                load = sum(flow.rate for flow in link.flows)
                fastest = max(flow.rate for flow in link.flows)
                spare = load < link.capacity * (1 - SLACK)
                for flow in outside_held:
                    if spare or flow.rate < fastest * (1 - SLACK):
                        drawn[flow] = None
        return list(drawn)


def fill(flows: Iterable[Rated], links: Iterable[Link]) -> None:
    """Progressive filling: raise all `flows` together; a link that is full holds back those on it.

    Flows on the links but not among `flows` keep their rates and count as load.
    """
    waiting = dict.fromkeys(flows)
    room: dict[Link, float] = {}
    count: dict[Link, int] = {}
    for link in links:
        load = 0.0
        raised = 0
        for flow in link.flows:
            if flow in waiting:
                raised += 1
            else:
                load += flow.rate
        if raised:
            room[link] = max(link.capacity - load, 0.0)
            count[link] = raised
    while waiting:
        tightest = min(count, key=lambda link: (room[link] / count[link], link.id))
        share = room[tightest] / count[tightest]
        for flow in [flow for flow in tightest.flows if flow in waiting]:
            del waiting[flow]
            if flow.bottleneck is not None:
                flow.bottleneck.held.pop(flow, None)
            flow.rate = share
            flow.bottleneck = tightest
            tightest.held[flow] = None
            for link in flow.links:
                room[link] = max(room[link] - share, 0.0)
                count[link] -= 1
                if not count[link]:
                    del count[link], room[link]
