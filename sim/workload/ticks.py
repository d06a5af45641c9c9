"""Spread arrivals that a trace gives in coarse ticks: uniformly, and seeded, within the tick."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np

from sim.workload.request import Arrival

CHUNK = 4096


def spread(arrivals: Iterable[Arrival], tick_ps: int, random: np.random.Generator) -> Iterator[Arrival]:
    """Move each arrival to a uniform instant of [its tick, its tick + `tick_ps`), in order of time.

    The draw of a request depends on its place in the trace alone. Equal instants keep that order.
    """
    draws = chain.from_iterable(random.integers(0, tick_ps, CHUNK).tolist() for _ in iter(int, 1))
    waiting: list[tuple[int, int, Arrival]] = []
    for number, (arrival, delay_ps) in enumerate(zip(arrivals, draws, strict=False)):
        while waiting and waiting[0][0] < arrival[0]:
            yield _at(heapq.heappop(waiting))
        heapq.heappush(waiting, (arrival[0] + delay_ps, number, arrival))
    while waiting:
        yield _at(heapq.heappop(waiting))


def _at(moved: tuple[int, int, Arrival]) -> Arrival:
    at_ps, _, (_, given, made, blocks) = moved
    return at_ps, given, made, blocks
