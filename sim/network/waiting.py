"""What sharing cost a transfer, and which link is to blame.

Model: alone, a transfer would last as long as its narrowest link needs for the bytes that it puts on it;
each part would run at the rate that fills just this time. While a part runs at another rate it falls behind
(or catches up) by one minus the ratio of the two, each instant, and the link that holds it back at that
instant is charged. The sum of the charges of the part that arrives last is what the transfer waited: its
duration less what it would have lasted alone.
Units: picoseconds.
What a link has lost, to a fault or to traffic that is no flow, counts as sharing too: alone refers to nominal
capacities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sim.network.flow import Pace
from sim.network.maxmin import Link, Rated, fill
from sim.network.parts import Part, Pooled
from sim.network.path import Path
from sim.tables.schema import NOT_YET


class Delivery(NamedTuple):
    """How a transfer went: the link that cost it most (the narrowest where none did), and what it waited.

    One that was broken off has not arrived.
    """

    link: int
    waited_ps: int
    is_broken: bool = False


def rate_alone(links: tuple[Link, ...]) -> float:
    """The rate of a flow that has its links to itself; one that it crosses twice gives it half."""
    if len(links) == 2:
        one, other = links
        if one is not other:
            return one.nominal if one.nominal < other.nominal else other.nominal
    if len({*links}) == len(links):
        return min([link.nominal for link in links])
    return min([link.nominal / links.count(link) for link in links])


def rates_alone(parts: Sequence[Part]) -> list[float]:
    """The rates of some parts that start together and have all their links to themselves.

    One for each part, and for each queue pair of a pooled one. At most: parts that meet in more than one
    place may not be able to fill all of them.
    """
    if len(parts) == 1 and isinstance(parts[0][1], Path):
        return [rate_alone(parts[0][1].links)]
    flows: list[tuple[float, Path]] = []
    for size, way in parts:
        if isinstance(way, Path):
            flows.append((size, way))
        else:
            draws = draws_alone([path.links for path in way.paths])
            whole = sum(draws)
            flows += [(size * draw / whole, path) for draw, path in zip(draws, way.paths, strict=True)]
    loads: dict[Link, float] = {}
    for moved, path in flows:
        for link in path.links:
            loads[link] = loads.get(link, 0) + moved
    lasts_ps = max([load / link.nominal for link, load in loads.items()])
    return [moved / lasts_ps for moved, _ in flows]


def foresee(parts: Sequence[Part]) -> None:
    """Note at what paces some parts how fast they are alone when it is lifted, if anything paces them."""
    ways = [(way,) if isinstance(way, Path) else way.paths for _, way in parts]
    paces = [path.links[-1] for paths in ways for path in paths]
    if not isinstance(paces[0], Pace):
        return
    free = [
        (size, _unpaced(way) if isinstance(way, Path) else Pooled(tuple(map(_unpaced, way.paths))))
        for size, way in parts
    ]
    for pace, rate in zip(paces, rates_alone(free), strict=True):
        assert isinstance(pace, Pace)
        pace.alone = rate


def _unpaced(path: Path) -> Path:
    return path._replace(links=path.links[:-1])


def draws_alone(ways: Sequence[tuple[Link, ...]]) -> list[float]:
    """The rate of each queue pair of a pool that has its links to itself: max-min fair among them."""
    links = {link: Link(link.id, link.nominal) for way in ways for link in way}
    flows = [Rated(tuple([links[link] for link in way])) for way in ways]
    for flow in flows:
        for link in flow.links:
            link.flows[flow] = link.flows.get(flow, 0) + 1
    fill(flows, links.values())
    return [flow.rate for flow in flows]


def delivery(holder: Link | None, waited: Mapping[int, float] | None) -> Delivery:
    """The account of a transfer from that of its last part."""
    if not waited:
        return Delivery(holder.id if holder is not None else NOT_YET, 0)
    if len(waited) == 1:
        ((link, only_ps),) = waited.items()
        return Delivery(link, round(only_ps) if only_ps > 0.0 else 0)
    total_ps = round(sum(waited.values()))
    return Delivery(max(waited, key=waited.__getitem__), max(total_ps, 0))
