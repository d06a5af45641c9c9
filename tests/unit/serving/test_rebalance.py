"""Rebalancing by hand: what is copied, where to, and when it is found."""

import pytest
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
