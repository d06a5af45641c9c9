"""Which block of a memory goes when room is needed: eviction rules by name.

A rule is a kind of Cache. All take only blocks that nobody holds and stay prefix-closed.
"""

from __future__ import annotations

from collections import deque

from sim.base.registry import Registry
from sim.kvpool.cache import Cache, Lease
from sim.kvpool.ranked import LeastOften, LengthAware
from sim.kvpool.tree import Holding, PrefixTree

eviction: Registry[type[Cache]] = Registry("eviction rule")
eviction("lfu")(LeastOften)
eviction("length_aware")(LengthAware)


@eviction("lru")
class LeastRecently(Cache):
    """Evicts the block touched longest ago."""

    __slots__ = ()


@eviction("ttl")
class Expiring(Cache):
    """Drops blocks that nobody has touched for a time, and evicts like lru when it is full before that."""

    __slots__ = ("_expired", "_touched_ps")

    def __init__(self, capacity: int, tree: PrefixTree, number: int) -> None:
        super().__init__(capacity, tree, number)
        self._touched_ps: deque[tuple[int, int]] = deque()
        self._expired = 0  # the number of the latest touch that is too long ago

    def note(self, now_ps: int) -> None:
        """Remember when the latest touch was."""
        touched = self._touched_ps
        if touched and touched[-1][0] == now_ps:
            touched[-1] = (now_ps, self._touch)
        elif not touched or touched[-1][1] != self._touch:
            touched.append((now_ps, self._touch))

    def expire(self, before_ps: int) -> int | None:
        """Drop what was touched last before an instant, held blocks once they are let go; nobody is told.

        Returns when the earliest touch was that is left, None if there is none.
        """
        touched = self._touched_ps
        while touched and touched[0][0] < before_ps:
            self._expired = touched.popleft()[1]
        self._drop_expired()
        return touched[0][0] if touched else None

    def release(self, lease: Lease) -> None:
        """The blocks are no longer held; those that expired meanwhile are dropped."""
        super().release(lease)
        self._drop_expired()

    def _drop_expired(self) -> None:
        oldest = self._order.newer
        if oldest.stretch is None or oldest.touch > self._expired:
            return
        held = self._holding()
        while oldest.stretch is not None and oldest.touch <= self._expired:
            following = oldest.newer
            gone = self._unheld(oldest, held)
            if gone:
                self.tree.shorten(oldest, self.number, gone)
                self.cached -= gone
                self.free += gone
            oldest = following

    @staticmethod
    def _unheld(holding: Holding, held: set[int]) -> int:
        """How many blocks at the end of a holding nobody holds."""
        stretch = holding.stretch
        assert stretch is not None
        end = stretch.start + holding.held
        return next((i for i in range(holding.held) if stretch.source[end - i - 1] in held), holding.held)
