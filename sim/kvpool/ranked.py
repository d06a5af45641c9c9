"""Memories that evict by a rank of their own instead of the order of touch.

Model: a block's count is how often it was touched here. The rank of a block never exceeds that of those
before it in its prompt, which are touched whenever it is, so these caches stay prefix-closed too:
- `lfu`: the block touched least often goes first; among equals the one touched longest ago, the deepest.
- `length_aware`: the same, but among blocks touched equally often the deepest in its prompt goes first, as
  later blocks are worth less to others (the LengthAwareCache of Mooncake, FAST'25, in our words).
A holding has one rank, that of its last block. Ranks are kept in a heap; an entry whose holding has a
different rank by now, or is gone, is passed over when it comes up.
Ignores: that counts should fade with time.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from sim.kvpool.cache import Cache, Lease
from sim.kvpool.tree import Holding, PrefixTree, Stretch

Rank = tuple[int, int, int]
Entry = tuple[Rank, int, Holding]


class LeastOften(Cache):
    """Evicts the block touched least often; among equals the one touched longest ago."""

    __slots__ = ("_entries", "_heap")
    is_by_depth = False

    def __init__(self, capacity: int, tree: PrefixTree, number: int) -> None:
        super().__init__(capacity, tree, number)
        self._heap: list[Entry] = []
        self._entries = 0
        tree.when_split[number] = self._split

    def publish(self, lease: Lease) -> None:
        """The same as elsewhere, but new blocks do not get the count of those that they follow."""
        if not lease.lost:
            self._part(lease.blocks)
        super().publish(lease)

    def _part(self, blocks: Sequence[int]) -> None:
        """Split the stretch of which a prompt holds the beginning and will hold more."""
        for stretch in self.tree.match(blocks).path:
            holding = stretch.holders.get(self.number)
            if holding is None:
                return
            if holding.held < min(stretch.length, len(blocks) - stretch.start):
                self.tree.split(stretch, holding.held)
                return

    def _rank(self, holding: Holding) -> Rank:
        """The rank of the last block of a holding."""
        assert holding.stretch is not None
        last = holding.stretch.start + holding.held
        if self.is_by_depth:
            return (holding.count, -last, holding.touch)
        return (holding.count, holding.touch, -last)

    def _push(self, holding: Holding) -> None:
        self._entries += 1
        heappush(self._heap, (self._rank(holding), self._entries, holding))
        if len(self._heap) > 64 + 8 * max(self.cached, 1):
            self._heap = [entry for entry in self._heap if self._is_true(entry)]
            heapify(self._heap)

    def _is_true(self, entry: Entry) -> bool:
        rank, _, holding = entry
        return holding.held > 0 and self._rank(holding) == rank

    def _split(self, upper: Holding, lower: Holding) -> None:
        self._push(upper)
        self._push(lower)

    def _touch_first(self, path: Sequence[Stretch], length: int) -> None:
        super()._touch_first(path, length)
        for stretch in path:
            if stretch.start < length:
                holding = stretch.holders[self.number]
                holding.count += 1
                self._push(holding)

    def _evict(self, short: int) -> None:
        self.free += short
        self.cached -= short
        held = self._holding()
        kept: list[Entry] = []
        while short:
            entry = heappop(self._heap)
            if not self._is_true(entry):
                continue
            gone = self._loose(entry[2], short, held)
            if not gone:
                kept.append(entry)
                continue
            self._drop(entry[2], gone)
            short -= gone
            if entry[2].held:
                self._push(entry[2])
        for entry in kept:
            heappush(self._heap, entry)

    def _loose(self, holding: Holding, most: int, held: set[int]) -> int:
        """How many blocks of a holding may go now, from its end."""
        assert holding.stretch is not None
        source, end = holding.stretch.source, holding.stretch.start + holding.held
        most = min(most, holding.held, 1 if self.is_by_depth else holding.held)
        gone = 0
        while gone < most and source[end - gone - 1] not in held:
            gone += 1
        return gone


class LengthAware(LeastOften):
    """Evicts the block touched least often; among equals the one deepest in its prompt."""

    __slots__ = ()
    is_by_depth = True
