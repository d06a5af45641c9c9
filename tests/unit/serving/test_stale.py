"""A view that is late, against a history that is looked up."""

from random import Random

import pytest

from sim.serving.stale import Stale
from sim.serving.unitloads import UnitLoads


@pytest.mark.parametrize("stale_ps", [0, 1, 7, 100])
def test_what_is_seen_is_what_was(stale_ps):
    dice = Random(stale_ps)
    units = [dice.randrange(3) for _ in range(12)]
    loads = UnitLoads(units)
    stale = Stale(stale_ps, lambda news: loads.set(*news))
    history, now_ps = [], 0
    for _ in range(2000):
        now_ps += dice.choice((0, 0, 1, 3))
        if dice.random() < 0.6:
            news = (dice.randrange(12), dice.randint(0, 50))
            stale.tell(now_ps, news)
            history.append((now_ps, news))
            continue
        assert stale.catch_up(now_ps) == now_ps - stale_ps
        then = [0] * 12
        for at_ps, (replica, load) in history:
            if at_ps <= now_ps - stale_ps:
                then[replica] = load
        assert loads.load == then
        least = [min(load for load, unit in zip(then, units, strict=True) if unit == one) for one in range(3)]
        assert [then[replica] for replica in loads.least()] == least
        assert [units[replica] for replica in loads.least()] == [0, 1, 2]


def test_ties_go_to_the_one_chosen_longest_ago():
    loads = UnitLoads([0, 0, 1])
    loads.choose(0, 5)
    assert loads.least() == [1, 2]
    loads.set(0, 0)
    assert loads.least() == [1, 2]
    loads.choose(1, 0)
    assert loads.least() == [0, 2]


def test_what_is_forgotten_is_never_learnt():
    learnt = []
    stale = Stale(5, learnt.append)
    stale.tell(0, "old")
    stale.forget()
    stale.tell(1, "new")
    stale.catch_up(6)
    assert learnt == ["new"]
