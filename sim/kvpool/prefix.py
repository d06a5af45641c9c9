"""Which replicas hold which KV blocks: the longest cached prefix of a prompt over all of them at once.

Model: block ids are chained (an equal id means an equal block after an equal prefix) and every cache is
prefix-closed (whoever holds a block holds all blocks before it). So the blocks of a prompt that somebody
holds are a leading run, and its end is found by bisection; whoever holds the last block of the run
holds the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class PrefixIndex:
    """Holders of every block, as a bit mask over replica numbers."""

    def __init__(self) -> None:
        self.holders: dict[int, int] = {}

    def add_all(self, blocks: Sequence[int], bit: int) -> None:
        """Note that the replica of this bit holds these blocks, which follow one another in a prompt."""
        holders = self.holders
        known = self.longest(blocks)[0]
        for block in blocks[:known]:
            holders[block] |= bit
        holders.update(dict.fromkeys(blocks[known:], bit))

    def remove_all(self, blocks: Iterable[int], bit: int) -> None:
        """Note that it holds them no longer."""
        holders = self.holders
        for block in blocks:
            if holders[block] == bit:
                del holders[block]
            else:
                holders[block] &= ~bit

    def longest(self, blocks: Sequence[int]) -> tuple[int, int]:
        """The length in blocks of the longest prefix that one replica holds, and who holds it (a mask)."""
        holders = self.holders
        low, high = 0, len(blocks)
        while low < high:
            middle = (low + high + 1) // 2
            if blocks[middle - 1] in holders:
                low = middle
            else:
                high = middle - 1
        return low, holders[blocks[low - 1]] if low else 0

    def depth(self, blocks: Sequence[int], bit: int, longest: int) -> int:
        """The length in blocks of the prefix that the replica of this bit holds, `longest` at most."""
        holders = self.holders
        low, high = 0, longest
        while low < high:
            middle = (low + high + 1) // 2
            if holders.get(blocks[middle - 1], 0) & bit:
                low = middle
            else:
                high = middle - 1
        return low


def members(mask: int) -> list[int]:
    """The numbers whose bits are set, in rising order."""
    found = []
    while mask:
        lowest = mask & -mask
        found.append(lowest.bit_length() - 1)
        mask ^= lowest
    return found
