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

from sim.network.maxmin import Link
from sim.network.path import Path
from sim.tables.schema import NOT_YET


class Delivery(NamedTuple):
    """How a transfer went: the link that cost it most (the narrowest where none did), and what it waited."""

    link: int
    waited_ps: int


def rates_alone(parts: Sequence[tuple[int, Path]]) -> list[float]:
    """The rate of each of some parts that start together and have all their links to themselves.

    At most: parts that meet in more than one place may not be able to fill all of them.
    """
    if len(parts) == 1:
        links = parts[0][1].links
        if len(set(links)) == len(links):
            return [min([link.nominal for link in links])]
    loads: dict[Link, int] = {}
    for size, path in parts:
        for link in path.links:
            loads[link] = loads.get(link, 0) + size
    lasts_ps = max([size / link.nominal for link, size in loads.items()])
    return [size / lasts_ps for size, _ in parts]


def delivery(holder: Link | None, waited: Mapping[int, float] | None) -> Delivery:
    """The account of a transfer from that of its last part."""
    if not waited:
        return Delivery(holder.id if holder is not None else NOT_YET, 0)
    total_ps = round(sum(waited.values()))
    return Delivery(max(waited, key=waited.__getitem__), max(total_ps, 0))
