"""Flows that are paced and then let go, and flows that are broken off: by hand, and computed anew."""

from random import Random

import pytest
from models.bench import Bench
from models.paced import Course, played

from sim.clock import FLOW_START, TIMER
from sim.network.flow import Pace
from sim.network.parts import Pooled

PACE = 91


class Courses(Bench):
    """A bench that plays courses, some paced, some broken off."""

    def __init__(self, capacities, courses):
        super().__init__(*capacities)
        self.broken = []
        for number, course in enumerate(courses):
            self.clock.at(course.start, FLOW_START + number).callbacks.append(
                lambda _, number=number, course=course: self.begin(number, course)
            )

    def begin(self, number, course):
        paths = [self.path(numbers) for numbers in course.paths]
        if course.made is not None:
            rate, made_at = course.made
            paces = [Pace(PACE, rate / len(paths)) for _ in paths]
            paths = [path.held_by(pace) for path, pace in zip(paths, paces, strict=True)]
            for pace in paces:
                self.clock.at(made_at, TIMER + number).callbacks.append(
                    lambda _, pace=pace: self.network.lift(pace)
                )
        way = paths[0] if len(paths) == 1 else Pooled(tuple(paths))
        whole = self.network.send_whole([(course.size, way)])
        whole.callbacks.append(lambda event: self.end(number, event))
        if course.broken is not None:
            self.clock.at(course.broken, FLOW_START - 1).callbacks.append(
                lambda _: number in self.told or self.network.cancel(whole)
            )

    def end(self, number, event):
        self.told[number] = event._value
        if event._value.is_broken:
            self.broken.append(number)
        else:
            self.ends[number] = self.clock.now


def test_who_is_let_go_takes_a_fair_share_of_the_others():
    """Paced at 1 beside one with 3 of 4; from 10 on both have 2: 10 + 20 / 2, 10 + (70 - 30) / 2."""
    bench = Courses([4], [Course(0, 30, [[0]], (1.0, 10)), Course(0, 70, [[0]])])
    assert bench.finish() == {0: 20, 1: 25}
    assert bench.network.carried == [100]


def test_what_a_paced_flow_fell_behind_costs_the_time_that_its_bytes_take_afterwards():
    """Made at 2 for 12, it gets 1 beside three others: 12 bytes behind, which take 3 at 4, not 6 at 2.

    Alone it would have 24 of 44 by then, and end at 17.
    """
    others = [Course(0, 12, [[0]])] * 3
    bench = Courses([4], [Course(0, 44, [[0]], (2.0, 12)), *others])
    assert bench.finish() == {0: 20, 1: 12, 2: 12, 3: 12}
    assert bench.told[0].waited_ps == 3
    assert bench.network.waited_ps[0] == pytest.approx(3 + 3 * 9)


def test_one_that_is_broken_off_leaves_its_share_and_what_it_has_moved():
    """Half of 4 for 10; then the other one has all of it: 20 + 60 / 4."""
    bench = Courses([4], [Course(0, 100, [[0]], None, 10), Course(0, 80, [[0]])])
    assert bench.finish() == {1: 25}
    assert bench.broken == [0]
    assert bench.network.carried == [20 + 80]
    assert bench.network.active == 0


def test_a_pace_that_is_lifted_after_its_flow_was_broken_off_does_nothing():
    bench = Courses([4], [Course(0, 100, [[0]], (1.0, 20), 10), Course(0, 80, [[0]])])
    assert bench.finish() == {1: 10 + -(-(80 - 30) // 4)}
    assert bench.network.carried == [10 + 80]


@pytest.mark.parametrize("pairs", [1, 2])
def test_a_link_that_did_not_count_before_it_failed_holds_paced_flows_back(pairs):
    """Link 1 was only counted; since 0 it has 2. From 5 to 15 go 20 bytes, the other 20 take 10 at 2."""
    bench, ends = Bench(4, 9), []
    pruned = bench.path([0])._replace(counted=(0, 1))
    paces = [Pace(PACE, 2.0 / pairs) for _ in range(pairs)]
    paths = tuple(pruned.held_by(pace) for pace in paces)

    def start(_):
        whole = bench.network.send([(40, Pooled(paths) if pairs > 1 else paths[0])])
        whole.callbacks.append(lambda _: ends.append(bench.clock.now))

    bench.clock.at(0, TIMER).callbacks.append(lambda _: bench.network.set_capacity(bench.links[1], 2e12))
    bench.clock.at(5, FLOW_START).callbacks.append(start)
    for pace in paces:
        bench.clock.at(15, TIMER).callbacks.append(lambda _, pace=pace: bench.network.lift(pace))
    bench.finish()
    assert ends == [25]


def drawn(dice, links):
    """Courses, most of them paced, some broken off, some at once."""
    courses, start = [], 0
    for _ in range(25):
        start += dice.choice((0, 0, 50, 333, 1500))
        size = dice.randint(100, 4000)
        paths = [
            dice.sample(range(links), dice.randint(1, min(3, links)))
            for _ in range(dice.choice((1, 1, 1, 2)))
        ]
        made = broken = None
        if dice.random() < 0.6:
            lasts = dice.choice((1, 40, 700, 2500))
            made = (size * dice.choice((0.5, 0.75, 0.9375)) / lasts, start + lasts)
        if dice.random() < 0.25:
            broken = start + dice.choice((1, 30, 500, 3000))
        courses.append(Course(start, size, paths, made, broken))
    return courses


@pytest.mark.parametrize("seed", range(40))
def test_histories_end_when_a_recomputation_says(seed):
    dice = Random(seed)
    capacities = [(2 * dice.randint(200, 2000) + 1) / 1024 for _ in range(dice.randint(1, 5))]
    courses = drawn(dice, len(capacities))
    bench = Courses(capacities, courses)
    ends, carried = played(courses, capacities)
    found = bench.finish()
    assert [found.get(i) for i in range(len(courses))] == ends
    assert sorted(bench.broken) == [i for i, end in enumerate(ends) if end is None]
    assert bench.network.carried == pytest.approx([float(moved) for moved in carried], abs=1e-6)
    assert bench.network.active == 0
    assert not any(link.flows or link.held for link in bench.links)


@pytest.mark.parametrize("seed", range(100, 120))
def test_what_was_waited_is_what_it_took_longer_than_alone(seed):
    """Paced or not: the end on an empty network, with its bytes made at the same rate, is the measure."""
    dice = Random(seed)
    capacities = [(2 * dice.randint(200, 2000) + 1) / 1024 for _ in range(4)]
    courses = [course._replace(paths=course.paths[:1], broken=None) for course in drawn(dice, 4)]
    bench = Courses(capacities, courses)
    ends = bench.finish()
    whole = 0.0
    for number, course in enumerate(courses):
        ([alone], _) = played([course], capacities)
        assert bench.told[number].waited_ps == pytest.approx(ends[number] - alone, abs=2)
        whole += bench.told[number].waited_ps
    assert sum(bench.network.waited_ps.values()) == pytest.approx(whole, abs=2 * len(courses))
