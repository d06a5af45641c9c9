"""The KV memory of a prefill replica: blocks in use, and blocks kept because they may be wanted again.

Model: memory is counted in whole KV blocks. A prompt takes all its blocks when it is admitted: those cached
already are held for it, the others are claimed. When it has been computed its blocks are cached for
others too; when its KV has been handed over they are no longer held, and stay until the room is
needed. Eviction takes the block touched longest ago that nobody holds. Blocks are touched when a prompt is
admitted and when it has been computed, deepest first, so a block is never older than those that follow
it, and the cache stays prefix-closed.
Ignores: the unused end of a last, partial block. Two prompts that compute an equal new block at the same
time count it once from the moment one of them is done, as engines that hash finished blocks do.

What costs is doing something for every block of every prompt, so most of it is not done block by block.
Chained ids and prefix closure let a bisection find what is cached. Cached blocks are kept in the order
of their touch by a plain dict, in which whole prompts are inserted at once; eviction reads its oldest
entries a few thousand at a time and drops those touched since. And held blocks are not marked: those
touched before the oldest prompt in memory was admitted are certainly not held, and only when eviction
gets that far are the held ones listed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from sim.kvpool.prefix import PrefixIndex

READ_AHEAD = 4096


class Lease:
    """The blocks that one prompt holds: the first `length` of `blocks`; `touch` is when it was admitted."""

    __slots__ = ("blocks", "count", "hits", "length", "touch")

    def __init__(self, blocks: Sequence[int], count: int, hits: int, touch: int) -> None:
        self.blocks = blocks
        self.count = count
        self.hits = hits
        self.length = hits
        self.touch = touch


class HbmCache:
    """KV blocks of one replica: `free`, `claimed` for prompts being computed, and cached ones."""

    __slots__ = (
        "_bit",
        "_cached",
        "_held",
        "_index",
        "_leases",
        "_oldest",
        "_touch",
        "capacity",
        "claimed",
        "free",
    )

    def __init__(self, capacity: int, index: PrefixIndex | None, number: int) -> None:
        self.capacity = capacity
        self.free = capacity
        self.claimed = 0
        self._cached: dict[int, int] = {}  # block -> touch, the oldest first
        self._oldest: list[tuple[int, int]] = []  # the first of them as last read, the oldest at the end
        self._leases: dict[Lease, None] = {}  # the oldest first
        self._held = 0  # at least as many as are held: a block is counted for each lease
        self._touch = 0
        self._index = index
        self._bit = 1 << number

    @property
    def cached_blocks(self) -> int:
        """Blocks that can be used again, held or not."""
        return len(self._cached)

    def cached(self, blocks: Sequence[int]) -> int:
        """How many leading blocks of a prompt are here and computed."""
        cached = self._cached
        low, high = 0, len(blocks)
        while low < high:
            middle = (low + high + 1) // 2
            if blocks[middle - 1] in cached:
                low = middle
            else:
                high = middle - 1
        return low

    def admit(self, blocks: Sequence[int], count: int) -> Lease | None:
        """Take the `count` blocks of a prompt, ids or not; None if it must wait for memory."""
        hits = self.cached(blocks) if blocks else 0
        wanted = count - hits
        if wanted > self.free and not self._can_evict(wanted - self.free, blocks, hits):
            return None
        self._touch += 1
        lease = Lease(blocks, count, hits, self._touch)
        self._leases[lease] = None
        self._held += hits
        if hits:
            self._touch_again(blocks, hits)
        if wanted > self.free:
            self._evict(wanted - self.free)
        self.free -= wanted
        self.claimed += wanted
        return lease

    def publish(self, lease: Lease) -> None:
        """The prompt is computed: its claimed blocks are cached, and held until `release`."""
        blocks, hits = lease.blocks, lease.hits
        if not blocks:
            return
        new = blocks[hits:] if hits else blocks
        if self._index is not None:
            self._index.add_all(new, self._bit)
        known = self.cached(new)
        for block in new[:known]:
            del self._cached[block]
        self.free += known
        self.claimed -= len(new)
        self._touch += 1
        self._cached.update(dict.fromkeys(reversed(new), self._touch))
        if hits:
            self._touch_again(blocks, hits)
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

    def _touch_again(self, blocks: Sequence[int], length: int) -> None:
        cached, touch = self._cached, self._touch
        for block in reversed(blocks[:length]):
            del cached[block]
            cached[block] = touch

    def _can_evict(self, short: int, blocks: Sequence[int], hits: int) -> bool:
        """Whether `short` blocks could go while this prompt's hits stay."""
        if short <= len(self._cached) - self._held - hits:
            return True
        kept = self._holding()
        kept.update(blocks[:hits])
        return short <= len(self._cached) - len(kept)

    def _holding(self) -> set[int]:
        """Blocks that some prompt holds."""
        held: set[int] = set()
        for lease in self._leases:
            held.update(lease.blocks[: lease.length])
        return held

    def _evict(self, short: int) -> None:
        """Free the `short` blocks touched longest ago among those that nobody holds."""
        cached = self._cached
        gone: list[int] = []
        safe_before = next(iter(self._leases)).touch
        while len(gone) < short:
            if not self._oldest:
                self._oldest = list(islice(cached.items(), READ_AHEAD))
                self._oldest.reverse()
            block, touch = self._oldest.pop()
            if touch >= safe_before:
                self._oldest.clear()
                held = self._holding()
                gone += list(islice((block for block in cached if block not in held), short - len(gone)))
                break
            if cached.get(block) == touch:
                gone.append(block)
                del cached[block]
        for block in gone:
            cached.pop(block, None)
        if self._index is not None:
            self._index.remove_all(gone, self._bit)
        self.free += len(gone)
