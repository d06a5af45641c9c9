"""What sharing cost a transfer and which link gets the blame: by hand, and against durations of histories."""

from random import Random

import pytest
from models.bench import Bench

from sim.network.waiting import rates_alone


class Told(Bench):
    """A bench that keeps what each transfer was told of itself, and when it began."""

    def __init__(self, *capacities):
        super().__init__(*capacities)
        self.told, self.began = {}, {}

    def send_at(self, start_ps, number, *parts):
        self.began[number] = start_ps

        def start(_):
            whole = self.network.send([(size, self.path(numbers)) for size, numbers in parts])
            whole.callbacks.append(lambda event: self.end(number, event))

        self.clock.at(start_ps, (4 << 40) + number).callbacks.append(start)

    def end(self, number, event):
        self.told[number] = event._value[:2]
        self.ends[number] = self.clock.now


def test_alone_nothing_is_waited_and_the_narrowest_link_is_named():
    bench = Told(4, 2, 3)
    bench.send_at(0, 0, (20, [0, 1, 2]))
    assert bench.finish() == {0: 10}
    assert bench.told == {0: (1, 0)}
    assert dict(bench.network.waited_ps) == {}


def test_two_that_share_wait_for_each_other():
    """Alone 15 and 10; together 20 (both at 1 until then) and 25."""
    bench = Told(2)
    bench.send_at(0, 0, (30, [0]))
    bench.send_at(10, 1, (20, [0]))
    assert bench.finish() == {0: 20, 1: 25}
    assert bench.told == {0: (0, 5), 1: (0, 5)}
    assert bench.network.waited_ps[0] == pytest.approx(10)


def test_the_link_that_cost_more_gets_the_blame():
    """Held at a half for 4 by link 1, then at a quarter for 16 by link 2, then free: 2 and 12 behind."""
    bench = Told(8, 8, 8)
    bench.send_at(0, 0, (8 * 100, [0, 1, 2]))
    bench.send_at(0, 1, (16, [1]))
    for number in (2, 3, 4):
        bench.send_at(4, number, (32, [2]))
    ends = bench.finish()
    assert ends[1] == 4
    assert ends[2] == ends[3] == ends[4] == 20
    assert bench.told[0] == (2, 14)
    assert ends[0] == 100 + 14


def test_what_a_fault_takes_is_charged_to_the_link_that_has_it():
    bench = Told(4, 5)
    bench.send_at(0, 0, (40, [0, 1]))
    bench.clock.at(2, 1 << 41).callbacks.append(lambda _: bench.network.set_capacity(bench.links[1], 0.0))
    bench.clock.at(9, 1 << 41).callbacks.append(lambda _: bench.network.set_capacity(bench.links[1], 5e12))
    assert bench.finish() == {0: 17}
    assert bench.told == {0: (1, 7)}


def test_parts_of_one_transfer_do_not_count_as_sharing():
    """Two parts through one link: alone they fill it together, so nothing is waited."""
    bench = Told(2, 9, 9)
    bench.send_at(0, 0, (10, [0, 1]), (30, [0, 2]))
    assert bench.finish() == {0: 20}
    assert bench.told[0][1] == 0


def test_parts_alone_run_at_rates_that_fill_the_narrowest_link():
    bench = Bench(2, 9)
    parts = [(10, bench.path([0, 1])), (30, bench.path([0]))]
    assert rates_alone(parts) == [0.5, 1.5]
    assert rates_alone(parts[:1]) == [2.0]
    assert rates_alone([(10, bench.path([1, 1]))]) == [4.5]


@pytest.mark.parametrize("seed", range(6))
def test_a_transfer_waits_its_duration_less_what_it_takes_alone(seed):
    dice = Random(seed)
    capacities = [dice.choice((1, 2, 3, 5)) for _ in range(6)]
    bench = Told(*capacities)
    alone_ps = {}
    for number in range(60):
        links = dice.sample(range(6), dice.randint(1, 3))
        size = dice.randint(1, 10**6)
        alone_ps[number] = size / min(capacities[i] for i in links)
        bench.send_at(dice.randint(0, 10**6), number, (size, links))
    ends = bench.finish()
    for number, (link, waited_ps) in bench.told.items():
        assert waited_ps == pytest.approx(ends[number] - bench.began[number] - alone_ps[number], abs=2)
        assert 0 <= link < 6
    total_ps = sum(waited_ps for _, waited_ps in bench.told.values())
    assert sum(bench.network.waited_ps.values()) == pytest.approx(total_ps, abs=2 * len(ends))
