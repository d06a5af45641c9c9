"""A memory of KV blocks: those in use, and those kept because they may be wanted again.

Model: memory is counted in whole KV blocks. Who brings blocks takes room for all of them first: those cached
already are held for it, the others claimed. When their bytes are there they are cached for others too, and
held until it lets go; they stay until the room is needed. In a replica's HBM it is a prompt that
takes its blocks when it is admitted; in host memory and on NVMe it is a write to them. A reader holds
blocks as long as it reads. Eviction takes the block touched longest ago that nobody holds. Blocks are
touched when they are taken and when their bytes are there, deepest first, so a block is never older than
those that follow it, and the cache stays prefix-closed.
Ignores: the unused end of a last, partial block. Two prompts that compute an equal new block at the same
time count it once from the moment one of them is done, as engines that hash finished blocks do.

Whether a block is held is not written down block by block: blocks touched before the oldest lease was taken
are certainly not held, and only when eviction gets that far are the held ones listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from sim.kvpool.tree import Holding, Match, PrefixTree, Stretch


class Run(NamedTuple):
    """Blocks from number `start` up to `end` of the prompt `source`."""

    source: Sequence[int]
    start: int
    end: int


def joined(runs: Iterable[Run]) -> list[Run]:
    """Runs that follow one another in one prompt as one, whichever came first and whatever came between."""
    whole: list[Run] = []
    before: dict[int, int] = {}  # the block before the start of a run, and which run that is
    for run in runs:
        at = before.pop(run.source[run.end - 1], len(whole))
        if at == len(whole):
            whole.append(run)
        else:
            whole[at] = whole[at]._replace(start=run.start)
        if run.start:
            before.setdefault(run.source[run.start - 1], at)
    return whole


class Lease:
    """The `count` blocks that somebody takes; the first `hits` were cached, the first `length` are now.

    `lost` says that the memory has lost everything since.
    """

    __slots__ = ("blocks", "count", "hits", "length", "lost", "touch")

    def __init__(self, blocks: Sequence[int], count: int, hits: int, touch: int) -> None:
        self.blocks = blocks
        self.count = count
        self.hits = hits
        self.length = hits
        self.touch = touch
        self.lost = False


class Cache:
    """KV blocks of one place: `free`, `claimed` for bytes on their way, and `cached` ones.

    `number` is that of the place in the tree it shares with others. `evicted`, if set, is told what went to
    make room, blocks of one prompt together, when all is settled here; it may change other caches.
    """

    __slots__ = (
        "_gone",
        "_held",
        "_leases",
        "_order",
        "_touch",
        "cached",
        "capacity",
        "claimed",
        "evicted",
        "free",
        "number",
        "tree",
    )

    def __init__(self, capacity: int, tree: PrefixTree, number: int) -> None:
        self.capacity = capacity
        self.free = capacity
        self.claimed = 0
        self.cached = 0
        self.tree = tree
        self.number = number
        self._order = Holding(None, 0, 0)  # its newer is the oldest holding, its older the newest
        self._leases: dict[Lease, None] = {}  # the oldest first
        self._held = 0  # at least as many as prompts hold: a block is counted for each lease
        self._touch = 0
        self._gone: list[Run] = []
        self.evicted: Callable[[Run], None] | None = None

    def hits(self, blocks: Sequence[int]) -> int:
        """How many leading blocks of a prompt are here and computed."""
        return self.tree.match(blocks).depth(self.number)

    def contents(self) -> Iterator[int]:
        """Every cached block, the oldest first."""
        holding = self._order.newer
        while holding.stretch is not None:
            run = _run(holding, holding.held)
            yield from reversed(run.source[run.start : run.end])
            holding = holding.newer

    def admit(self, blocks: Sequence[int], count: int, match: Match | None = None) -> Lease | None:
        """Take the `count` blocks of a prompt, ids or not; None if it must wait for memory.

        `match` is that of its blocks, for whoever knows it already.
        """
        hits = 0
        if blocks:
            match = match or self.tree.match(blocks)
            hits = match.depth(self.number)
        wanted = count - hits
        if wanted > self.free and not self._can_evict(wanted - self.free, blocks, hits):
            return None
        self._touch += 1
        lease = Lease(blocks, count, hits, self._touch)
        self._leases[lease] = None
        self._held += hits
        if match and hits:
            self._touch_first(match.path, hits)
        if wanted > self.free:
            self._evict(wanted - self.free)
        self.free -= wanted
        self.claimed += wanted
        if self._gone:
            self._tell()
        return lease

    def has_room(self, count: int, blocks: Sequence[int] = (), match: Match | None = None) -> bool:
        """Whether `count` blocks could be taken, of which those of a prompt that are here stay."""
        hits = 0
        if blocks:
            hits = (match or self.tree.match(blocks)).depth(self.number)
        return count - hits <= self.free or self._can_evict(count - hits - self.free, blocks, hits)

    def take(self, count: int) -> None:
        """Claim blocks that have no id and that nobody else will look for; there is room for them."""
        if count > self.free:
            self._evict(count - self.free)
        self.free -= count
        self.claimed += count
        if self._gone:
            self._tell()

    def give(self, count: int) -> None:
        """Give back claimed blocks that have no id."""
        self._unclaim(count)

    def publish(self, lease: Lease) -> None:
        """The prompt is computed: its claimed blocks are cached, and held until `release`."""
        blocks = lease.blocks
        if not blocks:
            return
        if lease.lost:
            self._unclaim(len(blocks) - lease.hits)
            return
        self._touch += 1
        match = self.tree.match(blocks)
        path = self.tree.grow(blocks, match)
        for stretch in path:
            length = stretch.length
            if stretch.start + length <= lease.hits:
                continue  # held since it was admitted, hence here
            more = self.tree.lengthen(stretch, self.number, min(length, len(blocks) - stretch.start))
            self.cached += more
            self.free -= more
        self._touch_first(path, len(blocks))
        self._unclaim(len(blocks) - lease.hits)
        self._held += len(blocks) - lease.length
        lease.length = len(blocks)

    def release(self, lease: Lease) -> None:
        """The KV has been handed over: its blocks are no longer held; those without an id are free."""
        del self._leases[lease]
        self._held -= lease.length
        self._unclaim(lease.count - len(lease.blocks))

    def hold(self, blocks: Sequence[int], length: int) -> Lease:
        """Keep the first `length` blocks of a prompt, which are here, from being evicted: they are read."""
        self._touch += 1
        lease = Lease(blocks[:length], length, length, self._touch)
        self._leases[lease] = None
        self._held += length
        self._touch_first(self.tree.match(lease.blocks).path, length)
        return lease

    def lose(self) -> None:
        """Lose everything that is cached, held or not; what is on its way will not be cached either."""
        while self._order.newer.stretch is not None:
            oldest = self._order.newer
            self.tree.shorten(oldest, self.number, oldest.held)
        self.free += self.cached
        self.cached = 0
        for lease in self._leases:
            self._held -= lease.length
            lease.length = 0
            lease.lost = True

    def keep(self, blocks: Sequence[int]) -> None:
        """Put the blocks of a prompt straight into the cache, as if it had come and gone."""
        lease = self.admit(blocks, len(blocks))
        if lease is not None:
            self.publish(lease)
            self.release(lease)

    def abandon(self, lease: Lease) -> None:
        """Instead of `publish` and `release`: the bytes will not come. What was here stays."""
        self._unclaim(len(lease.blocks) - lease.hits)
        self.release(lease)

    def _unclaim(self, blocks: int) -> None:
        self.claimed -= blocks
        self.free += blocks

    def _touch_first(self, path: Sequence[Stretch], length: int) -> None:
        """Touch the first `length` blocks of a prompt, which are all here, deepest first."""
        newest, touch = self._order, self._touch
        for stretch in reversed(path):
            inside = length - stretch.start
            if inside <= 0:
                continue
            holding = stretch.holders[self.number]
            if inside < holding.held:
                self.tree.split(stretch, inside)
            holding.touch = touch
            if holding.newer is not holding:
                holding.unlink()
            holding.insert_before(newest)

    def _can_evict(self, short: int, blocks: Sequence[int], hits: int) -> bool:
        """Whether `short` blocks could go while this prompt's hits stay."""
        if short <= self.cached - self._held - hits:
            return True
        kept = self._holding()
        kept.update(blocks[:hits])
        return short <= self.cached - len(kept)

    def _holding(self) -> set[int]:
        """Blocks that some prompt holds."""
        held: set[int] = set()
        for lease in self._leases:
            held.update(lease.blocks[: lease.length])
        return held

    def _evict(self, short: int) -> None:
        """Free the `short` blocks touched longest ago among those that no prompt holds."""
        self.free += short
        self.cached -= short
        first = next(iter(self._leases), None)
        safe_before = first.touch if first is not None else self._touch + 1
        oldest = self._order.newer
        while short and oldest.touch < safe_before:
            gone = min(short, oldest.held)
            following = oldest.newer
            self._drop(oldest, gone)
            short -= gone
            oldest = following
        if short:
            self._evict_around(self._holding(), short)

    def _evict_around(self, held: set[int], short: int) -> None:
        """The same where some of the oldest blocks are held; those of a stretch are its first ones."""
        oldest = self._order.newer
        while short:
            stretch, following = oldest.stretch, oldest.newer
            assert stretch is not None
            gone = 0
            source, end = stretch.source, stretch.start + oldest.held
            while gone < min(short, oldest.held) and source[end - gone - 1] not in held:
                gone += 1
            if gone:
                self._drop(oldest, gone)
            short -= gone
            oldest = following

    def _drop(self, holding: Holding, blocks: int) -> None:
        """Take the last `blocks` blocks of a holding away."""
        if self.evicted is not None:
            self._gone.append(_run(holding, blocks))
        self.tree.shorten(holding, self.number, blocks)

    def _tell(self) -> None:
        """Tell what has gone."""
        gone, self._gone = self._gone, []
        for run in joined(gone):
            if self.evicted is not None:
                self.evicted(run)


def _run(holding: Holding, blocks: int) -> Run:
    """The last `blocks` blocks of a holding."""
    stretch = holding.stretch
    assert stretch is not None
    end = stretch.start + holding.held
    return Run(stretch.source, end - blocks, end)
