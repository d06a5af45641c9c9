"""The way of a transfer: the links that can hold it back, and all that its bytes cross."""

from __future__ import annotations

from typing import NamedTuple

from sim.network.maxmin import Link


class Path(NamedTuple):
    """The way from one place to another.

    `links` can hold a flow back, `counted` are the ids of all links it crosses, `latency_ps` passes before
    the first byte.
    """

    links: tuple[Link, ...]
    counted: tuple[int, ...]
    latency_ps: int
