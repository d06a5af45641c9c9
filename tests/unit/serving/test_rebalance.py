"""Rebalancing by hand: what is copied, where to, and when it is found."""

import pytest
from models.hosts import Hosts, Stage, pooled_plan, prompt
from models.smallpool import played, simulation

from sim.kvpool.pool import DRAM, Place
from sim.serving.plan import LostPart

SECOND = 10**12


def pool_of(folder, *sets):
    """The rebalancing of a pool in which nobody has anything."""
    ready = simulation(folder, "kv_pool.rebalance=1 s", *sets)
    return ready, ready.serving.prefill.flows.fetching.rebalance


def keep(rebalance, node, prefix):
    rebalance.pool.cache(Place(DRAM, node)).keep(prefix)


def read(rebalance, node, prefix, times):
    for _ in range(times):
        rebalance.read(Place(DRAM, node), prefix)


A, B, C = (1, 2, 3, 4), (1, 2, 7), (9,)


def test_the_most_read_go_first_until_the_difference_is_made_up(tmp_path):
    """Node 0 was read 31 blocks more than the idlest: 20 of A, 9 of B, 2 of C."""
    _, rebalance = pool_of(tmp_path)
    for prefix, times in ((A, 5), (B, 3), (C, 2)):
        keep(rebalance, 0, prefix)
        read(rebalance, 0, prefix, times)
    keep(rebalance, 1, C)
    read(rebalance, 1, C, 12)
    assert list(rebalance.copies()) == [(0, 2, A), (0, 2, B), (0, 2, C)]
    read(rebalance, 2, C, 4)
    for node in range(3, 12):
        read(rebalance, node, C, 11)
    assert list(rebalance.copies()) == [(0, 2, A), (0, 2, B)]  # 31 - 4 = 27 are made up for by 20 + 9


def test_it_goes_to_the_idlest_node_that_lacks_it(tmp_path):
    _, rebalance = pool_of(tmp_path)
    for node, prefix in ((5, A), (0, A), (1, A[:2])):
        keep(rebalance, node, prefix)
    read(rebalance, 5, A, 2)
    assert list(rebalance.copies()) == [(5, 1, A)]
    read(rebalance, 1, C, 1)
    assert list(rebalance.copies()) == [(5, 2, A)]


def test_blocks_on_as_many_places_as_they_may_stay(tmp_path):
    _, rebalance = pool_of(tmp_path, "kv_pool.max_copies=2")
    for node in (0, 1):
        keep(rebalance, node, A)
    keep(rebalance, 0, B)
    read(rebalance, 0, A, 3)
    read(rebalance, 0, B, 1)
    assert list(rebalance.copies()) == [(0, 1, B)]


def test_the_whole_prefix_is_found_when_its_bytes_are_there(tmp_path):
    """In a second nothing moves; then 4 blocks cross the NICs of two nodes, eight of 50 GB/s at most."""
    ready, rebalance = pool_of(tmp_path)
    clock, moves = ready.clock, rebalance.moves
    keep(rebalance, 0, A)
    read(rebalance, 0, A, 1)
    size = 4 * moves.ways.block_bytes
    cache = rebalance.pool.cache(Place(DRAM, 1))
    soonest_ps = SECOND + size * SECOND // (8 * 50 * 10**9)
    while clock.advance(1):
        is_there = cache.hits(A) > 0
        assert is_there == (moves.counts["rebalanced"] == 1)
        assert not is_there or clock.now >= soonest_ps
    assert cache.hits(A) == 4
    assert soonest_ps <= clock.now <= soonest_ps + SECOND // 10
    assert moves.written_bytes["dram"] == moves.read_bytes["dram"] == size
    assert [moves.written_over[kind] for kind in ("dram", "nic_tx", "nic_rx")] == [2 * size, size, size]
    assert moves.read_over == {}
    assert cache.claimed == 0


@pytest.mark.parametrize("node", [0, 1])
def test_a_copy_whose_node_is_lost_is_broken_off(tmp_path, node):
    ready, rebalance = pool_of(tmp_path, f"kv_pool.lost=[{{node: {node}, at: 1000.02 ms}}]")
    assert rebalance.moves.plan.lost == (LostPart(SECOND + SECOND // 50_000, node),)
    keep(rebalance, 0, tuple(range(100)))
    read(rebalance, 0, tuple(range(100)), 1)
    while ready.clock.advance(100):
        pass
    assert rebalance.moves.counts == {"broken": 1}
    for cache in rebalance.pool.caches:
        assert cache.claimed == 0
        assert cache.free + cache.cached == cache.capacity


def test_a_run_that_rebalances_ends_and_copies(tmp_path):
    """Nothing is replicated on fetching, so that few have what many read."""
    ready = played(tmp_path, "kv_pool.rebalance=1 s", "kv_pool.replicate=never", "router.policy=least_loaded")
    assert ready.serving.moves.counts["rebalanced"] > 0
    assert ready.serving.done == ready.serving.arrived
    assert "rebalanced" not in played(tmp_path, "kv_pool.replicate=never").serving.moves.counts


PREFIX = (1, 2, 3, 4)


def read_at(*instants):
    """Prompts of node 0 that want four blocks of node 1, in a pool of three that is rebalanced every 1000."""
    nodes = pooled_plan(1, (50, 50, 50), write="back", rebalance_ps=1000)
    requests = [prompt(i, at_ps, (*PREFIX, 9 + i)) for i, at_ps in enumerate(instants)]
    return Stage(nodes, requests, kept=[(DRAM, 1, PREFIX)])


def test_a_copy_in_time_and_on_links():
    """Read at 0; at 1000 320 bytes go from node 1 to node 0 at 1 a picosecond, after 7 of latency.

    A prompt at 1100 gets half of the NIC: 220 bytes of the copy are left then, which take 440, and 100 of the
    prompt's after that. One at 1600 finds the copy on its own node. In the second interval nodes 0 and 1 were
    read once each, so the first of them gives a copy to node 2.
    """
    stage = read_at(0, 1100, 1600)
    assert stage.found_at(DRAM, 0, PREFIX) == 1107 + 440
    assert stage.found_at(DRAM, 2, PREFIX) == 2007 + 320
    found = stage.play()
    stage.assert_nothing_is_left()
    assert [found[i]["remote_tokens"] for i in range(3)] == [16, 16, 0]
    assert found[1]["phase_kv_fetch_ps"] == 7 + 440 + 100
    moves, carried = stage.moves, stage.hosts.carried()
    assert moves.counts["rebalanced"] == 2
    assert moves.read_bytes == {"dram": 5 * 320}
    assert moves.written_bytes == {"dram": 2 * 320}
    assert moves.written_over == {"dram": 4 * 320, "nic_tx": 2 * 320, "nic_rx": 2 * 320}
    assert (carried["node 1 nic_tx"], carried["node 0 nic_tx"]) == (3 * 320, 320)


@pytest.mark.parametrize(("most", "having"), [(None, [4, 4, 4]), (2, [4, 4, 0])])
def test_a_copy_that_is_under_way_counts_as_one(most, having):
    """Node 1 reads its own blocks at 0 and at 1500. Over slow NICs the first copy goes on until 3567.

    So at 2000 node 2 gets the next one, or nobody if two are enough.
    """
    nodes = pooled_plan(2, (50, 50, 50), write="back", rebalance_ps=1000, max_copies=most)
    requests = [prompt(0, 0, (90,)), prompt(1, 0, (*PREFIX, 9)), prompt(2, 1, (91,)), prompt(3, 1500, PREFIX)]
    stage = Stage(nodes, requests, Hosts({"nic_tx": 0.125, "nic_rx": 0.125}), kept=[(DRAM, 1, PREFIX)])
    stage.play_until(2500)
    assert stage.has(DRAM, 0, PREFIX) == 0
    stage.play()
    assert [stage.has(DRAM, node, PREFIX) for node in range(3)] == having
    assert stage.moves.counts["rebalanced"] == having.count(4) - 1
    stage.assert_nothing_is_left()
