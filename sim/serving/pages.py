"""The KV memory of a colocated replica: pages of its sequences, and blocks of prompts that may come again.

Model: both share one memory. Full blocks of a prompt that have an id lie in a cache (sim.kvpool.cache), where
they are shared and stay until the room is needed; everything else of a sequence lies in pages of its own.
Pages of all sequences lie close together: as many blocks are taken as their tokens fill. What nobody holds
goes when pages are wanted. Without reuse a block is a page, and there is nothing to share.
Units: pages, blocks, tokens of a page and of a block.
Ignores: blocks that outputs fill; they are known only once they come back in a prompt.
"""

from __future__ import annotations

from collections.abc import Sequence

from sim.kvpool.cache import Cache, Lease
from sim.kvpool.tree import Match


class PagedMemory:
    """Pages of sequences beside cached blocks: `pages` is how many are in use."""

    __slots__ = ("_block_tokens", "_page_tokens", "cache", "pages")

    def __init__(self, cache: Cache, page_tokens: int, block_tokens: int) -> None:
        self.cache = cache
        self.pages = 0
        self._page_tokens = page_tokens
        self._block_tokens = block_tokens

    def blocks_for(self, pages: int) -> int:
        """Blocks that so many pages fill."""
        return -(-pages * self._page_tokens // self._block_tokens)

    def has_room(self, pages: int) -> bool:
        """Whether so many more pages could be taken."""
        return self.cache.has_room(self._more(pages))

    def take(self, pages: int) -> None:
        """Take pages, for which there is room."""
        self.cache.take(self._more(pages))
        self.pages += pages

    def give(self, pages: int) -> None:
        """Give pages back."""
        more = self._more(-pages)
        self.pages -= pages
        self.cache.give(-more)

    def admit(
        self, blocks: Sequence[int], pages: int, spare_blocks: int, match: Match | None
    ) -> Lease | None:
        """Take the blocks of a prompt and pages beside them, if so many blocks stay free; None if not."""
        more = self._more(pages)
        if not self.cache.has_room(len(blocks) + more + spare_blocks, blocks, match):
            return None
        lease = self.cache.admit(blocks, len(blocks), match)
        assert lease is not None
        self.cache.take(more)
        self.pages += pages
        return lease

    def release(self, lease: Lease, pages: int) -> None:
        """Let go of the blocks of a prompt, computed or not, and of the pages beside them."""
        if lease.length < len(lease.blocks):
            self.cache.abandon(lease)
        else:
            self.cache.release(lease)
        self.give(pages)

    def _more(self, pages: int) -> int:
        return self.blocks_for(self.pages + pages) - self.blocks_for(self.pages)
