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

from collections.abc import Collection, Iterable, Mapping
from math import inf
from typing import Any, Generic, TypeVar

SLACK = 1e-12
"""Relative difference under which two rates, or a load and a capacity, count as equal."""


class Link:
    """A capacity in one direction, the flows on it with the crossings of each, and those it holds back.

    `nominal` is what it carries when nothing is wrong and nobody has taken a part of it.
    """

    __slots__ = ("capacity", "flows", "held", "id", "nominal")

    def __init__(self, id: int, capacity: float) -> None:
        self.id = id
        self.capacity = capacity
        self.nominal = capacity
        self.flows: dict[Any, int] = {}
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

    `add` and `remove` return the flows whose rate changed, with their old rates; a path needs at least one
    link. A flow that crosses a link twice takes twice its rate there.
    """

    def add(self, flow: F) -> dict[F, float]:
        """Let a flow in, and rate again whoever has to make room."""
        own: Link | None = None  # the tightest of those that nobody else is on
        shared: list[Link] = []
        for link in flow.links:
            flows = link.flows
            if flows:
                flows[flow] = flows.get(flow, 0) + 1
                shared.append(link)
            else:
                flows[flow] = 1
                if own is None or link.capacity < own.capacity:
                    own = link
        if own is not None and (not shared or _has_room(shared, flow, own.capacity)):
            flow.rate, flow.bottleneck = own.capacity, own
            own.held[flow] = None
            return {flow: 0.0}
        affected: dict[F, float] = {flow: 0.0}
        for link in shared:
            fair = link.capacity / len(link.flows)
            for other in link.flows:  # who has more than this gives way, unless the flow is held elsewhere
                if other.bottleneck is link or other.rate > fair:
                    affected[other] = other.rate
        return self._rate_again(affected)

    def remove(self, flow: F) -> dict[F, float]:
        """Let a flow out, and rate again whoever it had held back."""
        assert flow.bottleneck is not None
        del flow.bottleneck.held[flow]
        flow.bottleneck = None
        affected: dict[F, float] = {}
        for link in flow.links:
            link.flows.pop(flow, None)
            for other in link.held:
                affected[other] = other.rate
        if len(affected) == 1:
            return self._rate_one(*affected)
        return self._rate_again(affected) if affected else {}

    def free(self, flow: F, link: Link) -> dict[F, float]:
        """Take a link that nobody else is on off the way of a flow, and rate again whoever that concerns."""
        flow.links = tuple([other for other in flow.links if other is not link])
        del link.flows[flow]
        if flow.bottleneck is not link:
            return {}
        del link.held[flow]
        flow.bottleneck = None
        return self._rate_one(flow)

    def change(self, link: Link, capacity: float) -> dict[F, float]:
        """Give a link another capacity, and rate again whoever that concerns."""
        link.capacity = capacity
        affected = {flow: flow.rate for flow in link.flows}
        return self._rate_again(affected) if affected else {}

    def _rate_one(self, flow: F) -> dict[F, float]:
        """Rate a flow again; at once where that concerns nobody else, as links that hold no others tell."""
        before, tightest, rate = flow.rate, flow.links[0], inf
        for link in flow.links:
            crossings = link.flows[flow]
            load = fastest = 0.0
            if len(link.flows) > 1:
                if len(link.held) > (flow in link.held):
                    return self._rate_again({flow: before})
                for other, times in link.flows.items():
                    if other is not flow:
                        load += other.rate * times
                        fastest = max(fastest, other.rate)
            share = max(link.capacity - load, 0.0) / crossings
            if share < fastest:
                return self._rate_again({flow: before})
            if share < rate or (share == rate and link.id < tightest.id):
                tightest, rate = link, share
        if flow.bottleneck is not None:
            del flow.bottleneck.held[flow]
        flow.rate, flow.bottleneck = rate, tightest
        tightest.held[flow] = None
        return {flow: before} if before != rate else {}

    def _rate_again(self, affected: dict[F, float]) -> dict[F, float]:
        """Rate the affected flows against the others held, drawing in more until all have a bottleneck.

        Each comes with its rate before; those whose rate is another now are given back.
        """
        touched: dict[Link, None] = {}
        fresh: Iterable[F] = affected
        while fresh:
            for flow in fresh:
                for link in flow.links:
                    touched[link] = None
            if fill(affected, touched):
                break  # nobody else is on these links
            fresh = self._without_bottleneck(affected, touched)
            for flow in fresh:
                affected[flow] = flow.rate
        return {flow: rate for flow, rate in affected.items() if flow.rate != rate}

    @staticmethod
    def _without_bottleneck(affected: dict[F, float], touched: dict[Link, None]) -> list[F]:
        """Flows outside `affected` that must be rated again: they, or one inside, lack a bottleneck."""
        drawn: dict[F, None] = {}
        for link in touched:
            if not link.held:
                continue
            inside = [flow for flow in link.held if flow in affected]
            if inside:
                limit = max(flow.rate for flow in inside) * (1 + SLACK)
                for flow in link.flows:
                    if flow.rate > limit and flow not in affected:
                        drawn[flow] = None
            if len(inside) < len(link.held):
                load, fastest = 0.0, 0.0
                for flow, crossings in link.flows.items():
                    load += flow.rate * crossings
                    fastest = max(fastest, flow.rate)
                spare = load < link.capacity * (1 - SLACK)
                for flow in link.held:
                    if flow not in affected and (spare or flow.rate < fastest * (1 - SLACK)):
                        drawn[flow] = None
        return list(drawn)


def _has_room(links: Iterable[Link], fresh: Rated, rate: float) -> bool:
    """Whether links that hold nobody back would not do so either if a fresh flow had a rate."""
    for link in links:
        if link.held:
            return False
        load = rate * link.flows[fresh]
        for flow, crossings in link.flows.items():
            if flow is not fresh:
                load += flow.rate * crossings
        if load > link.capacity:
            return False
    return True


def fill(flows: Collection[Rated], links: Iterable[Link]) -> bool:
    """Progressive filling: raise all `flows` together; a link that is full holds back those on it.

    Flows on the links but not among `flows` keep their rates and count as load; whether there are none.
    """
    waiting = dict.fromkeys(flows)
    room, count, is_closed = _room(links, waiting)
    while True:
        tightest, share = _tightest(room, count)
        held = [flow for flow in tightest.flows if flow in waiting]
        for flow in held:
            if flow.bottleneck is not None:
                del flow.bottleneck.held[flow]
            flow.rate = share
            flow.bottleneck = tightest
            tightest.held[flow] = None
        if len(held) == len(waiting):
            return is_closed
        for flow in held:
            del waiting[flow]
            for link in flow.links:
                count[link] -= 1
                if count[link]:
                    left = room[link] - share
                    room[link] = left if left > 0.0 else 0.0
                else:
                    del count[link], room[link]


def _room(
    links: Iterable[Link], waiting: Mapping[Rated, None]
) -> tuple[dict[Link, float], dict[Link, int], bool]:
    """What each link has left for those who wait, their crossings, and whether nobody else is on any."""
    room: dict[Link, float] = {}
    count: dict[Link, int] = {}
    is_closed = True
    for link in links:
        load, raised = 0.0, 0
        for flow, crossings in link.flows.items():
            if flow in waiting:
                raised += crossings
            else:
                load += flow.rate * crossings
                is_closed = False
        if raised:
            room[link] = link.capacity - load if load < link.capacity else 0.0
            count[link] = raised
    return room, count, is_closed


def _tightest(room: dict[Link, float], count: dict[Link, int]) -> tuple[Link, float]:
    """The link with the smallest share for each crossing left, and that share; ties go to the lowest id."""
    best, least = None, inf
    for link, crossings in count.items():
        share = room[link] / crossings
        if share < least or (share == least and (best is None or link.id < best.id)):
            best, least = link, share
    assert best is not None
    return best, least
