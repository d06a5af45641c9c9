"""What the pool of KV blocks did between two instants, from its books at both.

Units: bytes, blocks.
Ignores: what a write had moved when it was broken off.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from sim.serving.kvmoves import KvMoves
from sim.tables.uses import HotBlocks, KvPoolUse, TierUse

HOTTEST = 10


@dataclass(frozen=True, slots=True)
class KvBooks:
    """The books of the pool at one instant; `occupancy` has for each tier what is cached, and the room."""

    read_bytes: Counter[str]
    written_bytes: Counter[str]
    read_over: Counter[str]
    written_over: Counter[str]
    counts: Counter[str]
    occupancy: tuple[tuple[str, int, int], ...]
    hottest: tuple[HotBlocks, ...]

    @classmethod
    def of(cls, moves: KvMoves) -> KvBooks:
        """Copy the books as they are now."""
        return cls(
            moves.read_bytes.copy(),
            moves.written_bytes.copy(),
            moves.read_over.copy(),
            moves.written_over.copy(),
            moves.counts.copy(),
            tuple(moves.pool.occupancy(moves.clock.now)),
            tuple(
                HotBlocks(first, blocks, reads, copies)
                for reads, first, blocks, copies in moves.pool.hottest(HOTTEST)
            ),
        )


def kv_pool_use(block_bytes: int, begin: KvBooks, end: KvBooks) -> KvPoolUse:
    """What was moved and counted between two instants; what is where at the second."""
    read_bytes, written_bytes = end.read_bytes - begin.read_bytes, end.written_bytes - begin.written_bytes
    return KvPoolUse(
        block_bytes=block_bytes,
        tiers=tuple(
            TierUse(name, capacity, cached, read_bytes[name], written_bytes[name])
            for name, cached, capacity in end.occupancy
        ),
        read_over=end.read_over - begin.read_over,
        written_over=end.written_over - begin.written_over,
        counts=end.counts - begin.counts,
        hottest=end.hottest,
    )
