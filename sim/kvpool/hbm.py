"""The KV memory of a prefill replica: blocks in use, and blocks kept because they may be wanted again.

Model: memory is counted in whole KV blocks. A prompt takes all its blocks when it is admitted: those
cached already are pinned, the others claimed. When it has been computed its blocks become visible to
others; when its KV has been handed over they are unpinned and stay cached until the room is needed.
Eviction takes the block unpinned longest ago. Blocks are unpinned deepest first, so a block is never
older than those that follow it, and the cache stays prefix-closed.
Ignores: the unused end of a last, partial block; two prompts computing an equal new block at the same
time count it once from the moment one of them is done, as engines that hash finished blocks do.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from sim.kvpool.prefix import PrefixIndex


class HbmCache:
    """KV blocks of one replica. `free` blocks are neither claimed, nor pinned, nor cached."""

    __slots__ = ("bit", "capacity", "claimed", "free", "idle", "index", "pins")

    def __init__(self, capacity: int, index: PrefixIndex | None, number: int) -> None:
        self.capacity = capacity
        self.free = capacity
        self.claimed = 0
        self.pins: dict[int, int] = {}
        self.idle: OrderedDict[int, None] = OrderedDict()
        self.index = index
        self.bit = 1 << number

    def cached(self, blocks: Sequence[int]) -> int:
        """How many leading blocks of a prompt are here and computed."""
        pins, idle = self.pins, self.idle
        low, high = 0, len(blocks)
        while low < high:
            middle = (low + high + 1) // 2
            block = blocks[middle - 1]
            if block in pins or block in idle:
                low = middle
            else:
                high = middle - 1
        return low

    def admit(self, blocks: Sequence[int], count: int) -> int | None:
        """Take the `count` blocks of a prompt; say how many of them were cached, or None if it must wait."""
        hits = self.cached(blocks) if blocks else 0
        pins, idle = self.pins, self.idle
        wanted = count - hits
        asleep = sum(1 for block in blocks[:hits] if block in idle)
        if wanted > self.free + len(idle) - asleep:
            return None
        for block in blocks[:hits]:
            if block in pins:
                pins[block] += 1
            else:
                del idle[block]
                pins[block] = 1
        self._claim(wanted)
        return hits

    def publish(self, blocks: Sequence[int], hits: int) -> None:
        """The prompt is computed: its claimed blocks become cached ones, pinned until `release`."""
        pins, idle, index = self.pins, self.idle, self.index
        for block in blocks[hits:]:
            if block in pins:
                pins[block] += 1
                self.free += 1
            elif block in idle:
                del idle[block]
                pins[block] = 1
                self.free += 1
            else:
                pins[block] = 1
                if index is not None:
                    index.add(block, self.bit)
            self.claimed -= 1

    def release(self, blocks: Sequence[int], count: int) -> None:
        """The KV has been handed over: unpin the blocks, deepest first; free those that have no id."""
        pins, idle = self.pins, self.idle
        for block in reversed(blocks):
            left = pins[block] - 1
            if left:
                pins[block] = left
            else:
                del pins[block]
                idle[block] = None
        nameless = count - len(blocks)
        self.claimed -= nameless
        self.free += nameless

    def keep(self, blocks: Sequence[int]) -> None:
        """Put the blocks of a prompt straight into the cache, as if it had come and gone."""
        hits = self.admit(blocks, len(blocks))
        if hits is not None:
            self.publish(blocks, hits)
            self.release(blocks, len(blocks))

    def _claim(self, wanted: int) -> None:
        short = wanted - self.free
        if short > 0:
            idle, index = self.idle, self.index
            for _ in range(short):
                block, _ = idle.popitem(last=False)
                if index is not None:
                    index.remove(block, self.bit)
            self.free += short
        self.free -= wanted
        self.claimed += wanted
