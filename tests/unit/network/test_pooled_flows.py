"""Queue pairs that take from one pool of bytes: by hand, and against a recomputation at every event."""

from itertools import pairwise
from random import Random

import pytest
from models.bench import Bench
from models.filling import fair_rates
from models.pooling import pooled_ends

from sim.network.parts import Pooled, dealt


def test_all_queue_pairs_work_until_the_last_byte():
    """Links of 1 and 3: 40 bytes need 10; split in halves the slower one would need 20."""
    bench = Bench(1, 3)
    bench.send_at(0, 0, (40, [[0], [1]]))
    assert bench.finish() == {0: 10}
    assert bench.network.carried == pytest.approx([10, 30])
    bench = Bench(1, 3)
    bench.send_at(0, 0, (20, [0]), (20, [1]))
    assert bench.finish() == {0: 20}


def test_the_end_moves_with_the_rate_of_any_queue_pair():
    """At 2 + 2 for 5; then one of them shares its link and has 1, for 10; the rest at 4 again."""
    bench = Bench(2, 2)
    bench.send_at(0, 0, (70, [[0], [1]]))
    bench.send_at(5, 1, (10, [1]))
    assert bench.finish() == {0: 20, 1: 15}
    assert bench.network.carried == pytest.approx([40, 30 + 10])


def test_a_queue_pair_that_stands_still_leaves_its_bytes_to_the_others():
    bench = Bench(2, 2)
    bench.send_at(0, 0, (40, [[0], [1]]))
    bench.clock.at(5, 1 << 41).callbacks.append(lambda _: bench.network.set_capacity(bench.links[1], 0.0))
    assert bench.finish() == {0: 15}
    assert bench.network.carried == pytest.approx([30, 10])


def test_all_of_them_wait_where_every_way_has_failed():
    bench = Bench(2, 2)
    for link in bench.links:
        bench.network.set_capacity(link, 0.0)
    bench.send_at(0, 0, (40, [[0], [1]]))
    bench.clock.at(7, 1 << 41).callbacks.append(lambda _: bench.network.set_capacity(bench.links[1], 4e12))
    assert bench.finish() == {0: 17}
    assert bench.network.carried == pytest.approx([0, 40])


def test_a_flow_that_starts_over_a_failed_link_waits_until_it_is_mended():
    bench = Bench(2, 5)
    bench.network.set_capacity(bench.links[1], 0.0)
    bench.send_at(0, 0, (10, [0, 1]))
    bench.send_at(0, 1, (10, [0]))
    bench.clock.at(9, 1 << 41).callbacks.append(lambda _: bench.network.set_capacity(bench.links[1], 5e12))
    assert bench.finish() == {1: 5, 0: 14}


def test_each_queue_pair_has_a_share_of_what_all_of_them_cross():
    """Four queue pairs of one transfer and one of another on the NIC of the sender: 4 to 1."""
    bench = Bench(10, 99, 99, 99, 99)
    bench.send_at(0, 0, (80, [[0, 1], [0, 2], [0, 3], [0, 4]]))
    bench.send_at(0, 1, (20, [0]))
    assert bench.finish() == {0: 10, 1: 10}
    assert bench.network.carried == pytest.approx([100, 20, 20, 20, 20])


def test_one_queue_pair_is_a_flow():
    for way in ([0, 1], [[0, 1]]):
        bench = Bench(3, 2)
        bench.send_at(0, 0, (25, way))
        bench.send_at(2, 1, (10, [1]))
        assert bench.finish() == {0: 18, 1: 12}
        assert bench.network.carried == pytest.approx([25, 35])


def test_flows_and_events_count_queue_pairs():
    bench = Bench(1, 1, 1)
    bench.send_at(0, 0, (30, [[0], [1], [2]]), (5, [0]))
    bench.clock.advance(1)
    assert bench.network.active == 4
    bench.finish()
    assert bench.network.active == 0
    assert bench.network.events == 8
    assert not any(link.flows or link.held for link in bench.links)


def test_what_is_under_way_is_counted_by_its_own_share():
    bench = Bench(1, 3)
    bench.send_at(0, 0, (40, [[0], [1]]))
    bench.clock.at(4, 1 << 41).callbacks.append(lambda _: bench.network.settle())
    bench.clock.advance(2)
    assert bench.network.carried == [4, 12]
    bench.finish()
    assert bench.network.carried == pytest.approx([10, 30])


def test_the_last_picosecond_counts_only_what_was_left():
    """10 bytes at 3 + 1 need two and a half picoseconds."""
    bench = Bench(3, 1)
    bench.send_at(0, 0, (10, [[0], [1]]))
    assert bench.finish() == {0: 3}
    assert bench.network.carried == pytest.approx([7.5, 2.5])


def test_pooled_bytes_are_one_part_and_split_ones_are_dealt_out():
    paths = [Bench(1).path([0]) for _ in range(3)]
    assert dealt(10, paths, is_pooled=True) == [(10, Pooled(tuple(paths)))]
    assert [size for size, _ in dealt(10, paths, is_pooled=False)] == [4, 3, 3]
    assert dealt(10, paths[:1], is_pooled=True) == [(10, paths[0])]


def drawn(dice, links, transfers):
    """Transfers (start, bytes, paths) of one to four queue pairs, some of them at once."""
    found, start_ps = [], 0
    for _ in range(transfers):
        start_ps += dice.choice((0, 0, 50, 333, 2000))
        ends = dice.sample(range(links), 2)
        middles = [dice.randrange(links) for _ in range(dice.choice((1, 1, 2, 3, 4)))]
        paths = [list(dict.fromkeys([ends[0], middle, ends[1]])) for middle in middles]
        found.append((start_ps, dice.randint(1, 9000), paths))
    return found


@pytest.mark.parametrize("seed", range(25))
def test_histories_end_when_a_recomputation_says_and_every_byte_is_where_it_went(seed):
    """Capacities are odd multiples of 1/1024, so hardly an end falls on a whole picosecond by itself."""
    dice = Random(seed)
    capacities = [(2 * dice.randint(200, 2000) + 1) / 1024 for _ in range(dice.randint(3, 7))]
    transfers = drawn(dice, len(capacities), 30)
    bench = Bench(*capacities)
    for number, (start_ps, size, paths) in enumerate(transfers):
        bench.send_at(start_ps, number, (size, paths))
    ends, moved = pooled_ends(transfers, capacities)
    assert [bench.finish()[number] for number in range(len(transfers))] == ends
    for link, carried in enumerate(bench.network.carried):
        pairs = [(i, j) for i, (_, _, paths) in enumerate(transfers) for j in range(len(paths))]
        sent = sum(moved[i][j] for i, j in pairs if link in transfers[i][2][j])
        assert carried == pytest.approx(float(sent), rel=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_counters_only_rise_and_never_run_ahead_of_the_rates(seed):
    dice = Random(seed)
    capacities = [dice.uniform(0.2, 3) for _ in range(5)]
    bench = Bench(*capacities)
    for number, (start_ps, size, paths) in enumerate(drawn(dice, 5, 30)):
        bench.send_at(start_ps, number, (size, paths))
    readings = []
    for _, _ in bench.play():
        bench.network.settle()
        readings.append((bench.clock.now, list(bench.network.carried)))
    for (at_ps, before), (then_ps, after) in pairwise(readings):
        for link, was, now in zip(bench.links, before, after, strict=True):
            assert was <= now + 1e-9
            assert now <= was + link.capacity * (then_ps - at_ps) * (1 + 1e-9) + 1e-6


def test_a_pooled_transfer_alone_waits_for_nobody_and_names_what_limits_most_of_it():
    bench = Bench(4, 1, 9)
    bench.send_at(0, 0, (40, [[0, 1], [0, 2]]))
    assert bench.finish() == {0: 10}
    assert bench.told == {0: (0, 0)}


def test_blame_goes_to_the_links_that_queue_pairs_fall_behind_on():
    """Alone 3 + 3; for 10 one has a third of link 0, the other half of link 1: 2 and 1.5 of 6 behind."""
    bench = Bench(3, 3)
    bench.send_at(0, 0, (60, [[0], [1]]))
    for number in (1, 2):
        bench.send_at(0, number, (10, [0]))
    bench.send_at(0, 3, (15, [1]))
    ends = bench.finish()
    assert [ends[number] for number in (1, 2, 3)] == [10, 10, 10]
    assert ends[0] == 10 + round((60 - 25) / 6 + 0.5)
    assert bench.told[0] == (0, 6)
    assert bench.network.waited_ps[0] == pytest.approx(10 * 2 / 6 + 2 * (10 - 10 / 3))
    assert bench.network.waited_ps[1] == pytest.approx(10 * 1.5 / 6 + 5)


@pytest.mark.parametrize("seed", range(6))
def test_a_pooled_transfer_waits_its_duration_less_what_it_takes_alone(seed):
    dice = Random(seed)
    capacities = [dice.choice((1, 2, 3, 5)) for _ in range(6)]
    bench = Bench(*capacities)
    transfers = [(start, 1000 * size, paths) for start, size, paths in drawn(dice, 6, 50)]
    for number, (start_ps, size, paths) in enumerate(transfers):
        bench.send_at(1000 * start_ps, number, (size, paths))
    ends = bench.finish()
    for number, (start_ps, size, paths) in enumerate(transfers):
        alone_ps = size / sum(fair_rates(paths, capacities))
        _, waited_ps = bench.told[number]
        assert waited_ps == pytest.approx(ends[number] - 1000 * start_ps - float(alone_ps), abs=2)
    total_ps = sum(waited_ps for _, waited_ps in bench.told.values())
    assert sum(bench.network.waited_ps.values()) == pytest.approx(total_ps, abs=2 * len(ends))
