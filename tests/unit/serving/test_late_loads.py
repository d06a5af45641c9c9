"""Loads that are seen late, against the history looked up."""

from random import Random
from types import SimpleNamespace

import pytest
from models.routing import NaivePool

from sim.serving.loads import LateLoads, Loads, loads_of


def test_without_delay_they_are_plain():
    assert type(loads_of(3, 0, None)) is Loads
    assert type(loads_of(3, 5, None)) is LateLoads


@pytest.mark.parametrize("seed", range(10))
def test_what_is_seen_is_what_was(seed):
    dice, clock = Random(seed), SimpleNamespace(now=0)
    stale_ps = dice.choice((1, 7, 40))
    loads = LateLoads(5, stale_ps, clock)
    naive = NaivePool(5, stale_ps=stale_ps, now=lambda: clock.now)
    loads.begin()
    given = []
    for _ in range(300):
        clock.now += dice.choice((0, 0, 1, 5))
        loads.catch_up()
        assert loads.least() == naive.choose("least_loaded", None)
        assert (loads.tokens, loads.chosen_at) == (naive.tokens, naive.chosen_at)
        if dice.random() < 0.5:
            given.append((dice.randrange(5), dice.randint(0, 9)))
            loads.choose(*given[-1])
            naive.give(*given[-1])
        elif given:
            replica, tokens = given.pop(0)
            loads.done(replica, tokens)
            naive.take(replica, tokens)


def test_nothing_is_late_before_the_simulation_begins():
    """Caches are warmed at once."""
    loads = LateLoads(2, 100, SimpleNamespace(now=0))
    loads.choose(0, 5)
    assert loads.least() == 1
    loads.done(0, 5)
    assert loads.tokens == [0, 0]
