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
        for head, part in _needs(receiver, receivers, heads):
            for sender, held in _holders(head, part, senders, receiver, receivers, heads):
                pair = (sender, receiver)
                found[pair] = found.get(pair, Fraction(0)) + held / heads
    return tuple((sender, receiver, part) for (sender, receiver), part in sorted(found.items()))


def _needs(rank: int, ranks: int, heads: int) -> list[tuple[int, Fraction]]:
    """The heads that a rank holds, each whole or (where heads do not divide) in part."""
    if ranks >= heads:
        return [(rank * heads // ranks, Fraction(1))]
    low, high = Fraction(rank * heads, ranks), Fraction((rank + 1) * heads, ranks)
    return [
        (head, min(high, Fraction(head + 1)) - max(low, Fraction(head)))
        for head in range(int(low), -(-high.numerator // high.denominator))
    ]


def _holders(
    head: int, part: Fraction, senders: int, receiver: int, receivers: int, heads: int
) -> list[tuple[int, Fraction]]:
    """Who sends a part of a head to a receiver: its one holder, or the copy in the receiver's position."""
    if senders <= heads:
        return [(head * senders // heads, part)]
    holders = [rank for rank in range(senders) if rank * heads // senders == head]
    place = receiver * len(holders) * heads // receivers % len(holders) if receivers > heads else 0
    return [(holders[place], part)]
