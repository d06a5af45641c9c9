"""Bytes that are no flow's: they take their part of a link, count as carried, and leave the rest to flows."""

from random import Random

import pytest
from models.filling import transfer_ends

from sim.base.errors import SimulationError
from sim.clock import FLOW_START, TIMER, Clock
from sim.network.flows import FlowNetwork
from sim.network.maxmin import Link
from sim.network.path import Path

PS_PER_S = 10**12


class Bench:
    """Links on a clock, transfers of one flow, and rates beside them (bytes per picosecond)."""

    def __init__(self, *capacities):
        self.clock = Clock()
        self.links = [Link(i, float(capacity)) for i, capacity in enumerate(capacities)]
        self.network = FlowNetwork(self.clock, [0.0] * len(self.links))
        self.ends = {}

    def send_at(self, start_ps, number, size, links):
        path = Path(tuple(self.links[i] for i in links), tuple(links), 0)

        def start(_):
            self.network.send([(size, path)]).callbacks.append(
                lambda _: self.ends.setdefault(number, self.clock.now)
            )

        self.clock.at(start_ps, FLOW_START + number).callbacks.append(start)

    def at(self, instant_ps, number, act):
        self.clock.at(instant_ps, TIMER + number).callbacks.append(lambda _: act(self.network, self.links))

    def occupy_at(self, instant_ps, number, link, rate):
        self.at(instant_ps, number, lambda net, links: net.occupy(links[link], rate * PS_PER_S))

    def finish(self):
        while self.clock.advance(1000):
            pass
        self.network.settle()
        return self.ends


def test_a_flow_gets_what_is_left():
    """Of 10: six for 5 picoseconds are 30 bytes, and the other 70 take 7."""
    bench = Bench(10)
    bench.send_at(0, 0, 100, [0])
    bench.occupy_at(0, 0, 0, 4)
    bench.occupy_at(5, 0, 0, 0)
    assert bench.finish() == {0: 12}
    assert bench.network.carried == [100 + 20]
    assert bench.links[0].capacity == 10


def test_flows_share_what_is_left_max_min_fairly():
    """Of 10 four are taken: two flows get three each, and one that has a link of 2 leaves the other four."""
    bench = Bench(10, 2)
    bench.occupy_at(0, 0, 0, 4)
    bench.send_at(0, 0, 30, [0])
    bench.send_at(0, 1, 30, [0])
    assert bench.finish() == {0: 10, 1: 10}
    bench = Bench(10, 2)
    bench.occupy_at(0, 0, 0, 4)
    bench.send_at(0, 0, 40, [0])
    bench.send_at(0, 1, 20, [0, 1])
    assert bench.finish() == {0: 10, 1: 10}


def test_a_rate_takes_the_place_of_the_one_before():
    bench = Bench(10)
    for instant_ps, rate in ((0, 4), (10, 7), (20, 7), (30, 1), (40, 0)):
        bench.occupy_at(instant_ps, 0, 0, rate)
    bench.finish()
    assert bench.network.carried == [pytest.approx(10 * 4 + 20 * 7 + 10 * 1)]


def test_what_is_under_way_is_counted_when_asked_for():
    bench, seen = Bench(10), []
    bench.occupy_at(0, 0, 0, 4)
    bench.at(7, 1, lambda net, _: (net.settle(), seen.append(net.carried[0])))
    bench.at(9, 1, lambda net, links: net.carry(links[0], 5))
    bench.occupy_at(10, 0, 0, 0)
    bench.finish()
    assert seen == [28]
    assert bench.network.carried == [45]


@pytest.mark.parametrize("rate", [10, 11])
def test_a_rate_that_leaves_nothing_is_refused(rate):
    bench = Bench(10)
    with pytest.raises(SimulationError, match="link 0 is asked for"):
        bench.network.occupy(bench.links[0], rate * PS_PER_S)


def test_a_link_that_fails_meanwhile_gives_flows_nothing_until_it_is_mended():
    """Of 10, 4 taken; it falls to 3, then comes back: 6 for 5 ps, 0 for 5, 6 to the end of the 60 bytes."""
    bench = Bench(10)
    bench.occupy_at(0, 0, 0, 4)
    bench.send_at(0, 0, 60, [0])
    bench.at(5, 1, lambda net, links: net.set_capacity(links[0], 3 * PS_PER_S))
    bench.at(10, 1, lambda net, links: net.set_capacity(links[0], 10 * PS_PER_S))
    bench.occupy_at(20, 0, 0, 0)
    assert bench.finish() == {0: 15}
    assert bench.links[0].capacity == 10


@pytest.mark.parametrize("seed", range(25))
def test_histories_end_when_a_recomputation_says(seed):
    """A rate beside flows is to them another capacity; the twin fills all links anew at each event.

    Where floats end a flow a picosecond later than fractions do, those beside it may end a few later.
    """
    dice = Random(seed)
    capacities = [dice.randint(4, 12) for _ in range(3)]
    bench, transfers, start_ps = Bench(*capacities), [], 0
    for number in range(25):
        start_ps += dice.choice((0, 3, 40))
        links = dice.sample(range(3), dice.randint(1, 2))
        transfers.append((start_ps, dice.randint(1, 400), links))
        bench.send_at(start_ps, number, *transfers[-1][1:])
    changes, taken, carried = [], [0] * 3, [0.0] * 3
    for i in range(3):
        since_ps = 0
        for _ in range(12):
            then_ps = since_ps + dice.randint(1, 60)
            carried[i] += taken[i] * (then_ps - since_ps)
            since_ps, taken[i] = then_ps, dice.choice((0, 1, 2, capacities[i] - 1))
            changes.append((since_ps, i, capacities[i] - taken[i]))
            bench.occupy_at(since_ps, i, i, taken[i])
        end_ps = since_ps + 1
        carried[i] += taken[i]
        changes.append((end_ps, i, capacities[i]))
        bench.occupy_at(end_ps, i, i, 0)
    expected = transfer_ends(transfers, capacities, changes)
    ends = bench.finish()
    assert all(abs(ends[number] - expected[number]) <= 4 for number in range(25))
    for i in range(3):
        own = sum(size for _, size, links in transfers if i in links)
        assert bench.network.carried[i] == pytest.approx(own + carried[i], rel=1e-12)
