"""Who sends what to whom between replicas of different tensor parallelism, piece by piece."""

from fractions import Fraction

import pytest
from models.heads import flows, held

from sim.network.reshard import shares

POWERS = (1, 2, 4, 8, 16, 32)
EVERY = [(senders, receivers, heads) for senders in POWERS for receivers in POWERS for heads in POWERS]


def by_pair(senders, receivers, heads):
    return {(sender, receiver): part for sender, receiver, part in shares(senders, receivers, heads)}


def received(found, receiver):
    return sum(part for (_, to), part in found.items() if to == receiver)


def sent(found, sender):
    return sum(part for (by, _), part in found.items() if by == sender)


def test_tp8_to_tp4():
    """Eight heads: receiver i needs heads 2i and 2i + 1, which are those of senders 2i and 2i + 1.

    So every sender sends all it has, an eighth of the KV, to one receiver, and every receiver hears from two.
    """
    eighth = Fraction(1, 8)
    assert shares(8, 4, 8) == (
        (0, 0, eighth),
        (1, 0, eighth),
        (2, 1, eighth),
        (3, 1, eighth),
        (4, 2, eighth),
        (5, 2, eighth),
        (6, 3, eighth),
        (7, 3, eighth),
    )


def test_tp4_to_tp8():
    """The same the other way round: every sender, with two heads, parts them between two receivers."""
    eighth = Fraction(1, 8)
    assert shares(4, 8, 8) == tuple((rank // 2, rank, eighth) for rank in range(8))


def test_tp16_to_tp8_with_eight_heads():
    """Senders 2i and 2i + 1 both hold head i. Receiver i takes it once, so eighths move, eight in all."""
    found = by_pair(16, 8, 8)
    assert sum(found.values()) == 1
    assert {receiver for _, receiver in found} == set(range(8))
    assert all(sender // 2 == receiver for sender, receiver in found)
    assert all(received(found, receiver) == Fraction(1, 8) for receiver in range(8))


def test_tp8_to_tp16_with_eight_heads():
    """Receivers 2i and 2i + 1 both want head i, so sender i sends it twice, and two copies of the KV move."""
    assert shares(8, 16, 8) == tuple((rank // 2, rank, Fraction(1, 8)) for rank in range(16))


@pytest.mark.parametrize(
    ("senders", "receivers", "pairs"),
    [
        (8, 8, [(rank, rank) for rank in range(8)]),
        (8, 4, [(0, 0), (2, 1), (4, 2), (6, 3)]),
        (4, 8, [(0, 0), (0, 1), (1, 2), (1, 3), (2, 4), (2, 5), (3, 6), (3, 7)]),
        (8, 1, [(0, 0)]),
        (1, 2, [(0, 0), (0, 1)]),
    ],
)
def test_latent_attention_is_one_head_that_every_rank_holds(senders, receivers, pairs):
    """All of the KV goes to every receiver, from as many different senders as there are."""
    assert shares(senders, receivers, 1) == tuple((*pair, Fraction(1)) for pair in pairs)


@pytest.mark.parametrize("ranks", POWERS)
@pytest.mark.parametrize("heads", POWERS)
def test_equal_parallelism_sends_from_each_rank_to_its_like(ranks, heads):
    part = Fraction(1, min(ranks, heads)) if ranks <= heads else Fraction(1, heads)
    assert shares(ranks, ranks, heads) == tuple((rank, rank, part) for rank in range(ranks))


@pytest.mark.parametrize(("senders", "receivers", "heads"), EVERY)
def test_every_piece_comes_from_who_holds_it_to_who_needs_it(senders, receivers, heads):
    found = by_pair(senders, receivers, heads)
    assert found == flows(senders, receivers, heads)
    assert sum(found.values()) == max(1, Fraction(receivers, heads))
    cut = senders * receivers
    for receiver in range(receivers):
        needs = held(receiver, receivers, heads, cut)
        assert received(found, receiver) == Fraction(len(needs), heads * cut)
    for (sender, receiver), part in found.items():
        both = held(sender, senders, heads, cut) & held(receiver, receivers, heads, cut)
        assert 0 < part <= Fraction(len(both), heads * cut)


@pytest.mark.parametrize(("senders", "receivers", "heads"), EVERY)
def test_copies_share_the_work(senders, receivers, heads):
    """With no fewer receivers than senders everyone sends the same; with fewer, nobody sends to two."""
    found = by_pair(senders, receivers, heads)
    if receivers >= senders:
        assert len({sent(found, sender) for sender in range(senders)}) == 1
    else:
        assert len({sender for sender, _ in found}) == len(found)


UNEVEN = [
    (senders, receivers, heads)
    for senders in range(1, 13)
    for receivers in range(1, 13)
    for heads in (1, 2, 3, 5, 6, 8, 10, 12)
]


def test_every_receiver_gets_its_part_also_where_heads_do_not_divide():
    for senders, receivers, heads in UNEVEN:
        found = by_pair(senders, receivers, heads)
        assert {receiver for _, receiver in found} == set(range(receivers))
        for receiver in range(receivers):
            assert received(found, receiver) == max(Fraction(1, receivers), Fraction(1, heads))


def test_equal_parallelism_sends_to_its_like_also_where_heads_do_not_divide():
    assert shares(4, 4, 10) == tuple((rank, rank, Fraction(1, 4)) for rank in range(4))
