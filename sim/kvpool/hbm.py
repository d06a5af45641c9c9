"""The KV memory of a prefill replica: blocks in use, and blocks kept because they may be wanted again.

Model: memory is counted in whole KV blocks. A prompt takes all its blocks when it is admitted: those cached
already are held for it, the others claimed. When it has been computed its blocks are cached for
others too; when its KV has been handed over they are no longer held, and stay until the room is
needed. Eviction takes the block touched longest ago that no prompt holds. Blocks are touched when a prompt
is admitted and when it has been computed, deepest first, so a block is never older than those that follow
it, and the cache stays prefix-closed.
Ignores: the unused end of a last, partial block. Two prompts that compute an equal new block at the same
time count it once from the moment one of them is done, as engines that hash finished blocks do.

Whether a block is held is not written down block by block: blocks touched before the oldest prompt in memory
was admitted are certainly not held, and only when eviction gets that far are the held ones listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sim.kvpool.tree import Holding, PrefixTree, Stretch


class Lease:
    """The `count` blocks that one prompt takes; the first `hits` were cached, the first `length` are now."""

    __slots__ = ("blocks", "count", "hits", "length", "touch")

    def __init__(self, blocks: Sequence[int], count: int, hits: int, touch: int) -> None:
        self.blocks = blocks
        self.count = count
        self.hits = hits
        self.length = hits
        self.touch = touch


class HbmCache:
    """KV blocks of one replica: `free`, `claimed` for prompts being computed, and `cached` ones.

    `number` is that of the replica in the tree it shares with the others of its pool.
    """

    __slots__ = (
        "_held",
        "_leases",
        "_order",
        "_touch",
        "cached",
        "capacity",
        "claimed",
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

    def hits(self, blocks: Sequence[int]) -> int:
        """How many leading blocks of a prompt are here and computed."""
        return self.tree.match(blocks).depth(self.number)

    def contents(self) -> Iterator[int]:
        """Every cached block, the oldest first."""
        holding = self._order.newer
        while holding.stretch is not None:
            yield from reversed(holding.stretch.blocks[: holding.held])
            holding = holding.newer

    def admit(self, blocks: Sequence[int], count: int) -> Lease | None:
        """Take the `count` blocks of a prompt, ids or not; None if it must wait for memory."""
        match, hits = None, 0
        if blocks:
            match = self.tree.match(blocks)
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
        return lease

    def publish(self, lease: Lease) -> None:
        """The prompt is computed: its claimed blocks are cached, and held until `release`."""
        blocks = lease.blocks
        if not blocks:
            return
        self._touch += 1
        match = self.tree.match(blocks)
        path = self.tree.grow(blocks, match)
        for stretch in path:
            length = len(stretch.blocks)
            if stretch.start + length <= lease.hits:
                continue  # held since it was admitted, hence here
            reach = min(length, len(blocks) - stretch.start)
            holding = stretch.holders.get(self.number)
            if holding is None:
                holding = stretch.holders[self.number] = Holding(stretch, 0, 0)
                stretch.shortened += 1
            if holding.held < reach:
                self.cached += reach - holding.held
                self.free -= reach - holding.held
                stretch.shortened -= reach == length
                holding.held = reach
        self._touch_first(path, len(blocks))
        self.free += len(blocks) - lease.hits
        self.claimed -= len(blocks) - lease.hits
        self._held += len(blocks) - lease.length
        lease.length = len(blocks)

    def release(self, lease: Lease) -> None:
        """The KV has been handed over: its blocks are no longer held; those without an id are free."""
        del self._leases[lease]
        self._held -= lease.length
        nameless = lease.count - len(lease.blocks)
        self.claimed -= nameless
        self.free += nameless

    def keep(self, blocks: Sequence[int]) -> None:
        """Put the blocks of a prompt straight into the cache, as if it had come and gone."""
        lease = self.admit(blocks, len(blocks))
        if lease is not None:
            self.publish(lease)
            self.release(lease)

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
        safe_before = next(iter(self._leases)).touch
        oldest = self._order.newer
        while short and oldest.touch < safe_before:
            gone = min(short, oldest.held)
            following = oldest.newer
            self.tree.shorten(oldest, self.number, gone)
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
            while gone < min(short, oldest.held) and stretch.blocks[oldest.held - gone - 1] not in held:
                gone += 1
            if gone:
                self.tree.shorten(oldest, self.number, gone)
            short -= gone
            oldest = following
