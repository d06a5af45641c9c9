"""Outstanding tokens by replica, and the least loaded, against looking at all of them."""

from random import Random

import pytest
from models.routing import NaivePool

from sim.serving.loads import Loads


def test_ties_go_to_the_replica_chosen_longest_ago():
    loads = Loads(3)
    order = []
    for _ in range(7):
        replica = loads.least()
        order.append(replica)
        loads.choose(replica, 10)
        loads.done(replica, 10)
    assert order == [0, 1, 2, 0, 1, 2, 0]


def test_the_fewest_tokens_come_before_the_longest_ago():
    loads = Loads(3)
    for replica, tokens in ((0, 5), (1, 3), (2, 4)):
        loads.choose(replica, tokens)
    assert loads.least() == 1
    loads.choose(1, 2)
    assert loads.least() == 2
    loads.choose(2, 1)
    assert loads.least() == 0
    loads.done(2, 5)
    assert loads.least() == 2


def test_asking_changes_nothing():
    loads = Loads(2)
    loads.choose(0, 1)
    assert [loads.least() for _ in range(5)] == [1] * 5
    assert loads.tokens == [1, 0]


def test_a_choice_of_no_tokens_counts_as_a_choice():
    loads = Loads(2)
    loads.choose(0, 0)
    assert loads.least() == 1
    loads.choose(1, 0)
    assert loads.least() == 0


@pytest.mark.parametrize("seed", range(30))
def test_random_histories_equal_looking_at_all(seed):
    dice = Random(seed)
    replicas = dice.choice((1, 2, 3, 10, 40))
    loads, naive = Loads(replicas), NaivePool(replicas)
    out = []
    for _ in range(600):
        what = dice.random()
        if what < 0.5:
            replica = loads.least() if dice.random() < 0.8 else dice.randrange(replicas)
            tokens = dice.choice((0, 1, 1, 2, 5, 100))
            loads.choose(replica, tokens)
            naive.give(replica, tokens)
            out.append((replica, tokens))
        elif out:
            replica, tokens = out.pop(dice.randrange(len(out)))
            loads.done(replica, tokens)
            naive.take(replica, tokens)
        if dice.random() < 0.7:
            assert loads.least() == naive.least()
        assert loads.tokens == naive.tokens


def test_the_heap_does_not_grow_with_the_number_of_requests():
    loads = Loads(4)
    for _ in range(5000):
        replica = loads.least()
        loads.choose(replica, 3)
        loads.done(replica, 3)
    assert len(loads._heap) < 200
