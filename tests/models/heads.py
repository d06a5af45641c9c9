"""Who sends which KV to whom when it moves between replicas, head by head and piece by piece.

Every head is cut into pieces fine enough that each rank holds whole ones. A rank without the piece that
another needs has nothing to do with it; of several that hold it, the copies take turns.
"""

from fractions import Fraction


def held(rank, ranks, heads, cut):
    """The pieces of a rank, `cut` of them to a head: a run of heads, or a copy of one."""
    pieces = heads * cut
    if ranks >= heads:
        head = rank * heads // ranks
        return set(range(head * cut, (head + 1) * cut))
    assert pieces % ranks == 0
    return set(range(rank * pieces // ranks, (rank + 1) * pieces // ranks))


def flows(senders, receivers, heads):
    """(sender, receiver) -> part of one copy of the KV, in the order of senders, then receivers.

    The copies of a piece on the sending side are dealt in runs to those who want it, in order.
    """
    cut = senders * receivers
    sending = [held(rank, senders, heads, cut) for rank in range(senders)]
    receiving = [held(rank, receivers, heads, cut) for rank in range(receivers)]
    found = {}
    for piece in range(heads * cut):
        having = [rank for rank in range(senders) if piece in sending[rank]]
        wanting = [rank for rank in range(receivers) if piece in receiving[rank]]
        for turn, receiver in enumerate(wanting):
            pair = having[turn * len(having) // len(wanting)], receiver
            found[pair] = found.get(pair, Fraction(0)) + Fraction(1, heads * cut)
    return dict(sorted(found.items()))
