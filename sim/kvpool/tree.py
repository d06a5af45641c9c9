"""Which replicas hold which KV blocks, as a prefix tree over all of them.

Model: block ids are chained (an equal id means an equal block after an equal prefix), and every cache is
prefix-closed (whoever holds a block holds all blocks before it). So blocks form a tree, and most of it is
unbranched: a *stretch* is a run of blocks that follow one another and have always been touched together.
A prompt of hundreds of blocks crosses a few stretches, and whatever is done for it costs as many steps.
Where a prompt leaves a stretch in its middle, or touches only its beginning, the stretch is split.
A stretch keeps the prompt that it came from, so the whole way down to it can be told.

A holder of a stretch holds a number of its leading blocks, all of them or (when its tail was evicted)
fewer, and has them in its own order of touch: a linked list of `Holding`s, the oldest first. Somebody holds
all of it: what everybody has evicted is cut off. Where holders hold different numbers of blocks, they are
kept in that order, so who holds the first blocks of a prompt is told without looking at all holders.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterator, Sequence


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

    `ranking` sorts the holders by how many blocks they hold; None as long as each of them holds all. `reads`
    says how often the stretch was read.
    """

    __slots__ = ("holders", "length", "ranking", "reads", "source", "start")

    def __init__(self, source: Sequence[int], start: int, length: int) -> None:
        self.source = source
        self.start = start
        self.length = length
        self.holders: dict[int, Holding] = {}
        self.ranking: list[tuple[int, int]] | None = None
        self.reads = 0

    def having(self, blocks: int) -> Collection[int]:
        """The caches that hold the first `blocks` blocks, as long as the tree does not change."""
        if self.ranking is None or self.ranking[0][0] >= blocks:
            return self.holders.keys()
        return Having(self.holders, self.ranking, blocks)

    def rerank(self, cache: int, before: int, now: int) -> None:
        """Note that a cache that held `before` blocks holds `now`, which its holding says already."""
        ranking = self.ranking
        if ranking is not None:
            if before:
                del ranking[bisect_left(ranking, (before, cache))]
            if now:
                insort(ranking, (now, cache))
        elif 0 < now < self.length:
            self._rank()

    def cut(self) -> None:
        """Cut off what nobody holds any more."""
        ranking = self.ranking
        if ranking is not None:
            self.length = ranking[-1][0]
            if ranking[0][0] == self.length:
                self.ranking = None

    def part(self, at: int) -> Stretch:
        """Cut the stretch after its first `at` blocks; what follows, which nobody holds yet."""
        lower = Stretch(self.source, self.start + at, self.length - at)
        lower.reads = self.reads
        self.length = at
        return lower

    def settle(self) -> None:
        """Rank the holders anew, where they hold different numbers of blocks."""
        self.ranking = None
        if any(holding.held < self.length for holding in self.holders.values()):
            self._rank()

    def _rank(self) -> None:
        self.ranking = sorted((holding.held, cache) for cache, holding in self.holders.items())


class Having(Collection[int]):
    """The caches that hold the first `blocks` blocks of a stretch, where others hold fewer."""

    __slots__ = ("_blocks", "_first", "_holders", "_ranking")

    def __init__(self, holders: dict[int, Holding], ranking: list[tuple[int, int]], blocks: int) -> None:
        self._holders = holders
        self._ranking = ranking
        self._blocks = blocks
        self._first = bisect_left(ranking, (blocks,))

    def __len__(self) -> int:
        return len(self._ranking) - self._first

    def __iter__(self) -> Iterator[int]:
        for at in range(self._first, len(self._ranking)):
            yield self._ranking[at][1]

    def __contains__(self, cache: object) -> bool:
        holding = self._holders.get(cache)  # type: ignore[call-overload]
        return holding is not None and holding.held >= self._blocks


class Match:
    """The way of a prompt down the tree: the stretches it crosses, and how far it goes into the last one.

    It is good until the tree changes.
    """

    __slots__ = ("path", "reach")

    def __init__(self, path: list[Stretch], reach: int) -> None:
        self.path = path
        self.reach = reach

    def longest(self) -> tuple[int, Collection[int]]:
        """The length in blocks of the longest prefix that one cache holds, and the caches that hold it."""
        if not self.path:
            return 0, ()
        last = self.path[-1]
        return last.start + self.reach, last.having(self.reach)

    def depth(self, cache: int) -> int:
        """The length in blocks of the prefix that one cache holds."""
        for stretch in reversed(self.path):
            holding = stretch.holders.get(cache)
            if holding is not None:
                inside = self.reach if stretch is self.path[-1] else stretch.length
                return stretch.start + min(holding.held, inside)
        return 0


NO_MATCH = Match([], 0)


class PrefixTree:
    """All stretches that somebody holds, by their first block.

    `when_split[cache]`, if there is one, is told of both parts of a holding that was split.
    """

    def __init__(self) -> None:
        self._by_first: dict[int, Stretch] = {}
        self._asked: Sequence[int] | None = None  # whose match is still good
        self._match = NO_MATCH
        self.when_split: dict[int, Callable[[Holding, Holding], None]] = {}

    def __len__(self) -> int:
        """Stretches in the tree."""
        return len(self._by_first)

    def match(self, blocks: Sequence[int]) -> Match:
        """Follow a prompt as far as anybody holds it; whoever asks again at once is told the same."""
        if blocks is self._asked:
            return self._match
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
        self._asked, self._match = blocks, Match(path, reach)
        return self._match

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
            self._asked = None
            self._by_first[blocks[at]] = fresh
            path.append(fresh)
        return path

    def split(self, stretch: Stretch, at: int) -> None:
        """Cut a stretch after its first `at` blocks; what follows becomes one of its own.

        In the order of touch of each holder the second part is the next older of the first.
        """
        self._asked = None
        lower = stretch.part(at)
        for cache, holding in stretch.holders.items():
            beyond = holding.held - at
            if beyond > 0:
                below = lower.holders[cache] = Holding(lower, beyond, holding.touch)
                below.count = holding.count
                below.insert_before(holding)
                holding.held = at
                if self.when_split and cache in self.when_split:
                    self.when_split[cache](holding, below)
        if stretch.ranking is not None:
            stretch.settle()
            lower.settle()
        self._by_first[lower.source[lower.start]] = lower

    def stretches(self) -> Collection[Stretch]:
        """All stretches, in no order that means anything."""
        return self._by_first.values()

    def lengthen(self, stretch: Stretch, cache: int, held: int) -> int:
        """Let a cache hold the first `held` blocks of a stretch; by how many that is more than before."""
        holding = stretch.holders.get(cache)
        if holding is None:
            holding = stretch.holders[cache] = Holding(stretch, 0, 0)
        before = holding.held
        if held <= before:
            return 0
        holding.held = held
        if stretch.ranking is not None or held < stretch.length:
            stretch.rerank(cache, before, held)
        return held - before

    def shorten(self, holding: Holding, cache: int, blocks: int) -> None:
        """Take the last `blocks` blocks of a holding away; what nobody holds leaves the tree."""
        self._asked = None
        stretch = holding.stretch
        assert stretch is not None
        before = holding.held
        holding.held = held = before - blocks
        holders = stretch.holders
        if not held:
            holding.unlink()
            del holders[cache]
            if not holders:
                del self._by_first[stretch.source[stretch.start]]
        elif len(holders) == 1:
            stretch.length = held
            return
        if stretch.ranking is not None or held:
            stretch.rerank(cache, before, held)
            stretch.cut()


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
