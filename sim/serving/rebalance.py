"""Rebalancing of the pool: what many read from one node's memory is copied to idle nodes too.

Model: at the end of every interval in which host memory was read, the busiest node is the one that most
blocks were read from. Of the prefixes read there those with the most reads are copied, until they account
for as many as the busiest node has more than the idlest. Each goes as a whole, so that the memory it goes to
stays prefix-closed, to the node read least among those that lack it, in a flow between the memories of the
two hosts. It is held at its source meanwhile, and found at its new place when the bytes are there. Where the
blocks lie on as many places as they may, or there is no room, it is not copied.
Units: blocks, picoseconds. Ignores: reads of NVMe.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Sequence

from simpy import Event

from sim.clock import FLOW_START, Errand
from sim.kvpool.cache import Cache, Lease
from sim.kvpool.pool import DRAM, TIERS, Place
from sim.network.waiting import Delivery
from sim.serving.kvmoves import KvMoves

Prefix = Sequence[int]


class Rebalance:
    """Counts reads of host memories in an interval, and copies at its end."""

    def __init__(self, moves: KvMoves, every_ps: int) -> None:
        self.moves = moves
        self.pool = moves.pool
        self.every_ps = every_ps
        self._read: Counter[int] = Counter()
        self._prefixes: dict[tuple[int, int], Prefix] = {}
        self._times: Counter[tuple[int, int]] = Counter()
        self._is_waiting = False
        self._coming: set[tuple[int, int]] = set()  # copies under way: where to, and their last block

    def read(self, place: Place, prefix: Prefix) -> None:
        """Count that a prefix was read; the first one in an interval sees to its end."""
        if place.tier != DRAM or not prefix:
            return
        self._read[place.node] += len(prefix)
        key = (place.node, prefix[-1])
        self._prefixes[key] = prefix
        self._times[key] += 1
        if not self._is_waiting:
            self._is_waiting = True
            Errand(self._wait())

    def _wait(self) -> Generator[Event, None, None]:
        """Copy at the end of the interval, and begin to count anew."""
        clock = self.moves.clock
        ends_ps = (clock.now // self.every_ps + 1) * self.every_ps
        yield clock.at(ends_ps, FLOW_START)
        copies = list(self.copies())
        self._is_waiting = False
        self._read.clear()
        self._prefixes.clear()
        self._times.clear()
        for source, target, prefix in copies:
            Errand(self._copy(source, target, prefix))

    def copies(self) -> Iterator[tuple[int, int, Prefix]]:
        """What goes from where to where, by the reads counted so far."""
        nodes = [
            place.node
            for place in self.pool.places
            if place.tier == DRAM and self.pool.cache(place) is not None
        ]
        if len(nodes) < 2:
            return
        busiest = min(nodes, key=lambda node: (-self._read[node], node))
        idle_first = sorted(nodes, key=lambda node: (self._read[node], node))
        left = self._read[busiest] - self._read[idle_first[0]]
        for node, last in sorted(self._times, key=self._rank):
            if node != busiest or left <= 0:
                continue
            prefix = self._prefixes[node, last]
            target = self._target(prefix, idle_first)
            if target is not None and target != busiest:
                left -= self._times[node, last] * len(prefix)
                yield busiest, target, prefix

    def _rank(self, key: tuple[int, int]) -> tuple[int, int]:
        """The most blocks read come first."""
        return -self._times[key] * len(self._prefixes[key]), key[1]

    def _target(self, prefix: Prefix, idle_first: Sequence[int]) -> int | None:
        """The idlest node that lacks a prefix and does not get it yet, unless it lies on enough places."""
        match = self.pool.match(prefix, self.moves.clock.now)
        coming = {node for node in idle_first if (node, prefix[-1]) in self._coming}
        most = self.moves.plan.max_copies
        if most is not None and self.pool.copies(match) + len(coming) >= most:
            return None
        lacking = (node for node in idle_first if self.pool.here(match, node)[0] < len(prefix))
        return next((node for node in lacking if node not in coming), None)

    def _copy(self, source: int, target: int, prefix: Prefix) -> Generator[Event, Delivery, None]:
        """Hold at the source, take room at the target, send, publish."""
        moves, pool = self.moves, self.pool
        one, other = pool.cache(Place(DRAM, source)), pool.cache(Place(DRAM, target))
        if one is None or other is None or one.hits(prefix) < len(prefix):
            return
        held = one.hold(prefix, len(prefix))
        taken = other.admit(prefix, len(prefix))
        if taken is None:
            moves.counts["skipped"] += 1
            one.release(held)
            return
        for cache in (one, other):
            pool.touched(cache, moves.clock.now)
        self._coming.add((target, prefix[-1]))
        parts = moves.ways.across(source, target, len(prefix) - taken.hits)
        latency_ps = max([path.latency_ps for _, path in parts])
        yield moves.clock.at(moves.clock.now + latency_ps, FLOW_START)
        is_lost = source in pool.lost or target in pool.lost
        delivery = None if is_lost else (yield moves.send(parts, source, target))
        self._coming.discard((target, prefix[-1]))
        one.release(held)
        if delivery is None or delivery.is_broken:
            moves.counts["broken"] += 1
            other.abandon(taken)
            return
        self._keep(other, taken)
        moves.counts["rebalanced"] += 1
        moves.read_bytes[TIERS[DRAM]] += sum([size for size, _ in parts])
        moves.has_written(Place(DRAM, target), parts)

    def _keep(self, cache: Cache, taken: Lease) -> None:
        """Let others find what has come."""
        cache.publish(taken)
        cache.release(taken)
        self.pool.touched(cache, self.moves.clock.now)
