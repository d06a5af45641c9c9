"""Transfers in time: exact ends by hand, histories against a recomputation at every event, and bytes."""

from itertools import pairwise
from random import Random

import pytest
from models.bench import Bench
from models.filling import transfer_ends

from sim.clock import FLOW_START


def test_a_transfer_alone_takes_its_size_over_the_rate_rounded_up():
    bench = Bench(4)
    bench.send_at(100, 0, (9, [0]))
    assert bench.finish() == {0: 103}


def test_the_second_transfer_slows_the_first_down_and_gets_faster_when_it_has_gone():
    """Alone 10 x 2, then together 10 each at 1: the first ends; the rest of the second, 10, alone at 2."""
    bench = Bench(2)
    bench.send_at(0, 0, (30, [0]))
    bench.send_at(10, 1, (20, [0]))
    assert bench.finish() == {0: 20, 1: 25}


def test_a_transfer_of_parts_ends_with_its_last_part():
    bench = Bench(1, 2)
    bench.send_at(0, 0, (10, [0]), (10, [1]))
    assert bench.finish() == {0: 10}
    assert bench.network.carried == [10, 10]
    assert bench.network.events == 4


def test_transfers_that_end_together_end_in_the_order_of_their_start():
    bench = Bench(1, 1, 1)
    for number in (0, 1, 2):
        bench.send_at(0, number, (10, [2 - number]))
    bench.finish()
    assert bench.log == [0, 1, 2]


def test_nothing_is_left_of_transfers_that_have_ended():
    bench = Bench(3, 5)
    bench.send_at(0, 0, (10, [0, 1]), (7, [1]))
    bench.finish()
    assert bench.network.active == 0
    assert not any(link.flows for link in bench.links)


def test_what_is_under_way_is_counted_when_asked_for():
    bench = Bench(2)
    bench.send_at(0, 0, (100, [0]))
    bench.clock.at(7, FLOW_START + 9).callbacks.append(lambda _: bench.network.settle())
    bench.clock.advance(2)
    assert bench.network.carried == [14]
    bench.finish()
    assert bench.network.carried == [100]


def test_bytes_that_cross_a_link_twice_count_twice_and_take_twice_as_long():
    """20 bytes through host memory in and out at 4: ten picoseconds; 5 of those with someone else."""
    bench = Bench(4, 100)
    bench.send_at(0, 0, (20, [0, 0, 1]))
    assert bench.finish() == {0: 10}
    assert bench.network.carried == [40, 20]
    bench = Bench(6, 100)
    bench.send_at(0, 0, (20, [0, 0, 1]))
    bench.send_at(0, 1, (10, [0]))
    assert bench.finish() == {0: 9, 1: 5}  # both at 2 for 5, then 10 bytes at 3
    assert bench.network.carried == [50, 20]


@pytest.mark.parametrize("seed", range(90, 105))
def test_histories_with_links_crossed_twice_end_when_a_recomputation_says(seed):
    dice = Random(seed)
    capacities = [(2 * dice.randint(200, 2000) + 1) / 1024 for _ in range(4)]
    transfers = [
        (start, size, [*path, *dice.choices(path, k=dice.randint(0, 2))])
        for start, size, path in drawn(dice, 4, 30)
    ]
    bench = Bench(*capacities)
    for number, (start_ps, size, path) in enumerate(transfers):
        bench.send_at(start_ps, number, (size, path))
    assert list(dict(sorted(bench.finish().items())).values()) == transfer_ends(transfers, capacities)
    for number, carried in enumerate(bench.network.carried):
        sent = sum(size * path.count(number) for _, size, path in transfers)
        assert carried == pytest.approx(sent, rel=1e-12)


def drawn(dice, capacities, transfers):
    """Transfers (start, bytes, path), some of them at once."""
    found = []
    start_ps = 0
    for _ in range(transfers):
        start_ps += dice.choice((0, 0, 50, 333, 2000))
        path = dice.sample(range(capacities), dice.randint(1, min(3, capacities)))
        found.append((start_ps, dice.randint(1, 4000), path))
    return found


@pytest.mark.parametrize("seed", range(30))
def test_random_histories_end_when_a_recomputation_says(seed):
    """Capacities are odd multiples of 1/1024, so hardly an end falls on a whole picosecond by itself."""
    dice = Random(seed)
    capacities = [(2 * dice.randint(200, 2000) + 1) / 1024 for _ in range(dice.randint(1, 6))]
    transfers = drawn(dice, len(capacities), 40)
    bench = Bench(*capacities)
    for number, (start_ps, size, path) in enumerate(transfers):
        bench.send_at(start_ps, number, (size, path))
    assert list(dict(sorted(bench.finish().items())).values()) == transfer_ends(transfers, capacities)


@pytest.mark.parametrize("seed", range(30, 60))
def test_histories_full_of_ties_end_when_a_recomputation_says(seed):
    """Where an end falls on a whole picosecond, the last bit of a rate decides whether it is rounded up.

    Whoever shares links with such a flow gets its share a picosecond later, and may end a few later.
    """
    dice = Random(seed)
    capacities = [dice.choice((1, 2, 3, 4, 6)) for _ in range(dice.randint(1, 6))]
    transfers = [
        (start, size - size % 12 + 12, path) for start, size, path in drawn(dice, len(capacities), 40)
    ]
    bench = Bench(*capacities)
    for number, (start_ps, size, path) in enumerate(transfers):
        bench.send_at(start_ps, number, (size, path))
    ends = bench.finish()
    for number, expected in enumerate(transfer_ends(transfers, capacities)):
        assert abs(ends[number] - expected) <= 4


@pytest.mark.parametrize("seed", range(60, 75))
def test_bytes_in_are_bytes_out(seed):
    """The integral of the rate is what was sent, by flow and by link, and no link is over its capacity.

    The end is rounded up, so the last picosecond of a flow may count for more than there was left.
    """
    dice = Random(seed)
    capacities = [dice.uniform(0.2, 3) for _ in range(5)]
    transfers = drawn(dice, 5, 60)
    bench = Bench(*capacities)
    for number, (start_ps, size, path) in enumerate(transfers):
        bench.send_at(start_ps, number, (size, path))
    by_flow, over_links = {}, [0.0] * 5
    for before, then in bench.play():
        for link in bench.links:
            load = sum(flow.rate for flow in link.flows)
            assert load <= link.capacity * (1 + 1e-12)
            over_links[link.id] += load * (then - before)
        for flow in {flow: None for link in bench.links for flow in link.flows}:
            by_flow[flow] = by_flow.get(flow, 0.0) + flow.rate * (then - before)
    assert len(by_flow) == len(transfers)
    for flow, moved in by_flow.items():
        assert flow.size * (1 - 1e-12) <= moved <= flow.size + 3
    for number in range(5):
        sizes = [size for _, size, path in transfers if number in path]
        assert bench.network.carried[number] == pytest.approx(sum(sizes), rel=1e-12)
        assert sum(sizes) * (1 - 1e-12) <= over_links[number] <= sum(sizes) + 3 * len(sizes)


@pytest.mark.parametrize("seed", range(80, 90))
def test_counters_only_rise_and_never_run_ahead_of_the_rates(seed):
    dice = Random(seed)
    capacities = [dice.uniform(0.2, 3) for _ in range(4)]
    bench = Bench(*capacities)
    for number, (start_ps, size, path) in enumerate(drawn(dice, 4, 40)):
        bench.send_at(start_ps, number, (size, path))
    readings = []
    for _, then in bench.play():
        bench.network.settle()
        readings.append((bench.clock.now, then, list(bench.network.carried)))
    for (at_ps, _, before), (then_ps, _, after) in pairwise(readings):
        for link, was, now in zip(bench.links, before, after, strict=True):
            assert was <= now <= was + link.capacity * (then_ps - at_ps) * (1 + 1e-9) + 1e-6


def test_more_bandwidth_is_never_slower_for_a_single_flow():
    dice = Random(1)
    for _ in range(200):
        size, capacity = dice.randint(1, 10**6), dice.uniform(0.1, 5)
        slow, fast = Bench(capacity, 9), Bench(capacity * dice.uniform(1, 4), 9)
        for bench in (slow, fast):
            bench.send_at(0, 0, (size, [0, 1]))
        assert fast.finish()[0] <= slow.finish()[0]
