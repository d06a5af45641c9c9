"""The pool: what nodes lend of their host memory and NVMe, and which KV blocks lie where.

Model: each node that lends has a memory of whole KV blocks in each tier, with the eviction rule of the pool.
One index, a prefix tree, spans them all: one look-up tells the longest prefix that any node has, and who has
it. A tier holds a block only with all blocks before it. What host memory evicts is written to the
NVMe of the same node, where it lends some, together with those blocks before it that are not there yet:
without them it could not be found. A block may be on any number of nodes.
`local` pools are the same memories, but a replica sees only those of its own node.
Units: blocks.
Ignores: fragmentation, and metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from heapq import heappop, heappush
from typing import NamedTuple

from sim.kvpool.cache import Cache, Run
from sim.kvpool.eviction import Expiring, eviction
from sim.kvpool.tree import Match, PrefixTree

TIERS: tuple[str, ...] = ("dram", "nvme")
DRAM, NVME = range(len(TIERS))


class Place(NamedTuple):
    """A tier of a node."""

    tier: int
    node: int


class KvPool:
    """The memories that nodes lend, and the index over them.

    `lent[tier][node]` is how many blocks a node lends. `demoted` is told what leaves host memory.
    """

    def __init__(
        self,
        lent: Sequence[Mapping[int, int]],
        rule: str = "lru",
        is_shared: bool = True,
        ttl_ps: int | None = None,
    ) -> None:
        self.tree = PrefixTree()
        self.is_shared = is_shared
        self.ttl_ps = ttl_ps
        self.places = [Place(tier, node) for tier, nodes in enumerate(lent) for node in sorted(nodes)]
        self._numbers = {place: number for number, place in enumerate(self.places)}
        kind = eviction[rule]
        self.caches = [
            kind(lent[place.tier][place.node], self.tree, number) for number, place in enumerate(self.places)
        ]
        self.lost: set[int] = set()
        self._due: list[tuple[int, int]] = []  # for each memory that may have something to expire, since when
        self._is_due = [False] * len(self.caches)

    def cache(self, place: Place) -> Cache | None:
        """The memory at a place; None where nothing is lent, or the node is lost."""
        number = self._numbers.get(place)
        return self.caches[number] if number is not None and place.node not in self.lost else None

    def demote_to(self, demoted: Callable[[int, Run], None]) -> None:
        """Call this with the node and the blocks whenever host memory evicts and there is NVMe below."""
        for number, place in enumerate(self.places):
            if place.tier == DRAM and Place(NVME, place.node) in self._numbers:
                self.caches[number].evicted = partial(demoted, place.node)

    def match(self, blocks: Sequence[int], now_ps: int = 0) -> Match:
        """Follow a prompt down the index, as far as anybody has it."""
        self.expire(now_ps)
        return self.tree.match(blocks)

    def expire(self, now_ps: int) -> None:
        """Drop what nobody has touched for too long; whoever looks or takes room does so first."""
        if self.ttl_ps is not None:
            self._expire(now_ps - self.ttl_ps)

    def here(self, match: Match, node: int) -> tuple[int, Place | None]:
        """The longest prefix that a node itself has, in blocks, and in which tier."""
        longest, found = 0, None
        for tier in range(len(TIERS)):
            place = Place(tier, node)
            number = self._numbers.get(place)
            depth = match.depth(number) if number is not None else 0
            if depth > longest:
                longest, found = depth, place
        return longest, found

    def longest(self, match: Match) -> tuple[int, Collection[int]]:
        """The longest prefix that any node has, in blocks, and the numbers of the places that have it."""
        return match.longest() if self.is_shared else (0, ())

    def copies(self, match: Match) -> int:
        """On how many places the last matched block lies."""
        return len(match.longest()[1])

    def read(self, match: Match, blocks: int) -> None:
        """Count a read of the first blocks of a prompt, so that the most wanted can be told."""
        for stretch in match.path:
            inside = blocks - stretch.start
            if inside <= 0:
                return
            if inside < stretch.length:
                self.tree.split(stretch, inside)
            stretch.reads += 1

    def touched(self, cache: Cache, now_ps: int) -> None:
        """Note when a memory was touched; only expiry asks."""
        if isinstance(cache, Expiring):
            cache.note(now_ps)
            self._wait(cache.number, now_ps)

    def lose(self, node: int) -> None:
        """Lose a node with everything that it lends; it does not come back."""
        self.lost.add(node)
        for number, place in enumerate(self.places):
            if place.node == node:
                self.caches[number].evicted = None
                self.caches[number].lose()

    def occupancy(self, now_ps: int = 0) -> Iterator[tuple[str, int, int]]:
        """For each tier its name, the blocks cached in it now, and how many there is room for."""
        self.expire(now_ps)
        for tier, name in enumerate(TIERS):
            own = [
                cache
                for place, cache in zip(self.places, self.caches, strict=True)
                if place.tier == tier and place.node not in self.lost
            ]
            if own:
                yield name, sum(cache.cached for cache in own), sum(cache.capacity for cache in own)

    def hottest(self, most: int) -> list[tuple[int, int, int, int]]:
        """The stretches read most often since they came: reads, first block, blocks, places that have all."""
        read = [one for one in self.tree.stretches() if one.reads]
        ranked = sorted(read, key=lambda one: (-one.reads, one.source[one.start]))
        return [
            (one.reads, one.source[one.start], one.length, len(one.having(one.length)))
            for one in ranked[:most]
        ]

    def _expire(self, before_ps: int) -> None:
        """Let all memories expire; only those are looked at that were touched before."""
        due = self._due
        while due and due[0][0] < before_ps:
            number = heappop(due)[1]
            self._is_due[number] = False
            cache = self.caches[number]
            assert isinstance(cache, Expiring)
            since = cache.expire(before_ps)
            if since is not None:
                self._wait(number, since)

    def _wait(self, number: int, since_ps: int) -> None:
        if not self._is_due[number]:
            self._is_due[number] = True
            heappush(self._due, (since_ps, number))
