"""The pool against lists that are searched from end to end, whatever the rule, on random histories."""

from collections import Counter
from random import Random

import pytest
from pool_parts import SEEN, SHAPES, PoolTwins

from sim.kvpool.eviction import eviction


def history(rule, shape, seed, things):
    """A pool and its twin after many things have happened, compared after each."""
    dice = Random(f"{rule} {shape} {seed}")
    twins = PoolTwins(dice, SHAPES[shape](dice), rule, nodes=dice.randint(1, 4) if things < 1000 else 4)
    for _ in range(things):
        twins.happen()
        twins.compare(dice.sample(twins.prompts, 2))
    twins.compare(twins.prompts)
    return twins


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rule", eviction.names())
def test_random_histories_leave_what_lists_leave(rule, shape):
    for seed in range(3):
        history(rule, shape, seed, 200)


@pytest.mark.slow
@pytest.mark.parametrize("rule", eviction.names())
def test_long_random_histories_have_all_that_is_hard(rule):
    seen = Counter()
    for shape in SHAPES:
        for seed in (100, 101):
            seen.update(history(rule, shape, seed, 1500).seen)
    rare = {what: seen[what] for what in SEEN if what != "expired" or rule == "ttl"}
    assert min(rare.values()) > 1, rare
    assert rare["evicted"] > 200, rare
