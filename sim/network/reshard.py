"""Who sends what to whom when KV moves between replicas of different tensor parallelism.

Model: KV heads are dealt out evenly. A rank of a replica with no more ranks than heads holds a run of
heads; with more ranks than heads, neighbouring ranks hold copies of one head. Every receiving rank needs its
own heads; it takes each from the rank that holds it, and of copies from the one in the same position as
itself, so that copies share the work. Equal parallelism on both sides makes rank i send to rank i.
Ignores: layers split by pipeline parallelism.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

Share = tuple[int, int, Fraction]
"""Sending rank, receiving rank, and the part of one full copy of the KV that moves between them."""


@cache
def shares(senders: int, receivers: int, heads: int) -> tuple[Share, ...]:
    """What each rank sends to each; the parts add up to 1, or to receivers / heads where that is more."""
    found: dict[tuple[int, int], Fraction] = {}
    for receiver in range(receivers):
        low, high = _held(receiver, receivers, heads)
        for sender in _asked(receiver, receivers, senders, heads):
            first, last = _held(sender, senders, heads)
            overlap = min(high, last) - max(low, first)
            if overlap > 0:
                found[sender, receiver] = overlap / heads
    return tuple((sender, receiver, part) for (sender, receiver), part in sorted(found.items()))


def _held(rank: int, ranks: int, heads: int) -> tuple[Fraction, Fraction]:
    """The run of heads that a rank holds: one whole head where there are more ranks than heads."""
    if ranks > heads:
        head = rank * heads // ranks
        return Fraction(head), Fraction(head + 1)
    return Fraction(rank * heads, ranks), Fraction((rank + 1) * heads, ranks)


def _asked(receiver: int, receivers: int, senders: int, heads: int) -> list[int]:
    """The ranks that a receiver turns to: all, or of those that hold a copy the one in its own position."""
    if senders <= heads:
        return list(range(senders))
    copies: dict[int, list[int]] = {}
    for sender in range(senders):
        copies.setdefault(sender * heads // senders, []).append(sender)
    same = [rank for rank in range(receivers) if rank * heads // receivers == receiver * heads // receivers]
    place = same.index(receiver) if receivers > heads else 0
    return [ranks[place * len(ranks) // len(same) if receivers > heads else 0] for ranks in copies.values()]
