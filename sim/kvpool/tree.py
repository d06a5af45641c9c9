"""Which replicas hold which KV blocks, as a prefix tree over all of them.

Model: block ids are chained (an equal id means an equal block after an equal prefix), and every cache is
prefix-closed (whoever holds a block holds all blocks before it). So blocks form a tree, and most of it is
unbranched: a *stretch* is a run of blocks that follow one another and have always been touched together.
A prompt of hundreds of blocks crosses a few stretches, and whatever is done for it costs as many steps.
Where a prompt leaves a stretch in its middle, or touches only its beginning, the stretch is split.
A stretch keeps the prompt that it came from, so the whole way down to it can be told.

A holder of a stretch holds a number of its leading blocks, all of them or (when its tail was evicted)
fewer, and has them in its own order of touch: a linked list of `Holding`s, the oldest first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence


class Holding:
    """What one cache holds of a stretch: its first `held` blocks, last touched at `touch`, `count` times."""

    __slots__ = ("count", "held", "newer", "older", "stretch", "touch")

    def __init__(self, stretch: Stretch | None, held: int, touch: int) -> None:
        self.stretch = stretch
        self.held = held
        self.touch = touch
        self.count = 0
        self.older = self
        self.newer = self

    def unlink(self) -> None:
        """Leave the list."""
        self.older.newer = self.newer
        self.newer.older = self.older

    def insert_before(self, newer: Holding) -> None:
        """Enter the list as the next older of another holding."""
        self.newer, self.older = newer, newer.older
        newer.older.newer = self
        newer.older = self


class Stretch:
    """A run of `length` blocks, `start` blocks deep in the prompt `source`, and who holds how much of it.

    `shortened` counts the holders that hold less than all of it, `reads` how often it was read.
    """

    __slots__ = ("holders", "length", "reads", "shortened", "source", "start")

    def __init__(self, source: Sequence[int], start: int, length: int) -> None:
        self.source = source
        self.start = start
        self.length = length
        self.holders: dict[int, Holding] = {}
        self.shortened = 0
        self.reads = 0


class Match:
    """The way of a prompt down the tree: the stretches it crosses, and how far it goes into the last one."""

    __slots__ = ("path", "reach")

    def __init__(self, path: list[Stretch], reach: int) -> None:
        self.path = path
        self.reach = reach

    def longest(self) -> tuple[int, Collection[int]]:
        """The length in blocks of the longest prefix that one cache holds, and the caches that hold it."""
        if not self.path:
            return 0, ()
        last = self.path[-1]
        if not last.shortened:
            return last.start + self.reach, last.holders.keys()
        lengths = {cache: min(holding.held, self.reach) for cache, holding in last.holders.items()}
        most = max(lengths.values())
        return last.start + most, tuple(cache for cache, length in lengths.items() if length == most)

    def depth(self, cache: int) -> int:
        """The length in blocks of the prefix that one cache holds."""
        for stretch in reversed(self.path):
            holding = stretch.holders.get(cache)
            if holding is not None:
                inside = self.reach if stretch is self.path[-1] else stretch.length
                return stretch.start + min(holding.held, inside)
        return 0


class PrefixTree:
    """All stretches that somebody holds, by their first block.

    `when_split[cache]`, if there is one, is told of both parts of a holding that was split.
    """

    def __init__(self) -> None:
        self._by_first: dict[int, Stretch] = {}
        self.when_split: dict[int, Callable[[Holding, Holding], None]] = {}

    def __len__(self) -> int:
        """Stretches in the tree."""
        return len(self._by_first)

    def match(self, blocks: Sequence[int]) -> Match:
        """Follow a prompt as far as anybody holds it."""
        by_first, path, at, end = self._by_first, [], 0, len(blocks)
        reach = 0
        while at < end:
            stretch = by_first.get(blocks[at])
            if stretch is None:
                break
            path.append(stretch)
            own, start = stretch.source, stretch.start
            reach = min(stretch.length, end - at)
            if own[start + reach - 1] != blocks[at + reach - 1]:
                reach = _common(own[start : start + reach], blocks[at : at + reach])
            at += reach
            if reach < stretch.length:
                break
        return Match(path, reach)

    def grow(self, blocks: Sequence[int], match: Match) -> list[Stretch]:
        """Make the tree hold a whole prompt; the stretches it crosses, of which it crosses all blocks.

        Only where the prompt ends inside a stretch does it cross less: then the last one is not split.
        """
        path = list(match.path)
        at = path[-1].start + match.reach if path else 0
        if at < len(blocks):
            if path and match.reach < path[-1].length:
                self.split(path[-1], match.reach)
            fresh = Stretch(blocks, at, len(blocks) - at)
            self._by_first[blocks[at]] = fresh
            path.append(fresh)
        return path

    def split(self, stretch: Stretch, at: int) -> None:
        """Cut a stretch after its first `at` blocks; what follows becomes one of its own.

        In the order of touch of each holder the second part is the next older of the first.
        """
        length = stretch.length - at
        lower = Stretch(stretch.source, stretch.start + at, length)
        lower.reads = stretch.reads
        stretch.length = at
        stretch.shortened = 0
        for cache, holding in stretch.holders.items():
            beyond = holding.held - at
            if beyond > 0:
                below = lower.holders[cache] = Holding(lower, beyond, holding.touch)
                below.count = holding.count
                below.insert_before(holding)
                lower.shortened += beyond < length
                holding.held = at
                if self.when_split and cache in self.when_split:
                    self.when_split[cache](holding, below)
            else:
                stretch.shortened += beyond < 0
        if lower.holders:
            self._by_first[lower.source[lower.start]] = lower

    def stretches(self) -> Collection[Stretch]:
        """All stretches, in no order that means anything."""
        return self._by_first.values()

    def shorten(self, holding: Holding, cache: int, blocks: int) -> None:
        """Take the last `blocks` blocks of a holding away; nobody's stretches leave the tree."""
        stretch = holding.stretch
        assert stretch is not None
        if holding.held == stretch.length:
            stretch.shortened += 1
        holding.held -= blocks
        if not holding.held:
            stretch.shortened -= 1
            holding.unlink()
            del stretch.holders[cache]
            if not stretch.holders:
                del self._by_first[stretch.source[stretch.start]]


def _common(own: Sequence[int], blocks: Sequence[int]) -> int:
    """How many leading blocks two runs share that begin alike and end differently."""
    low, high = 1, len(blocks) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if own[middle - 1] == blocks[middle - 1]:
            low = middle
        else:
            high = middle - 1
    return low
