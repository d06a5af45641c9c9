"""Copies of what other nodes have, and blocks that expire, by hand.

Nodes 0 and 1 compute, node 2 lends. Four blocks of A come from it: 320 bytes at 1 a picosecond, after 7.
"""

import pytest
from models.hosts import Hosts, Stage, pooled_plan, prompt, staged

from sim.kvpool.pool import DRAM, NVME
from sim.serving.kvuse import KvBooks

A = (1, 2, 3, 4, 5)
CACHED = A[:4]


def fetched(starts=(0,), dram=(50, 50, 50), hosts=None, **kv):
    """Prompts of A on nodes 0 and 1 in turn, of which node 2 has four blocks."""
    requests = [prompt(i, at_ps, A) for i, at_ps in enumerate(starts)]
    stage, found = staged(pooled_plan(2, dram, **kv), requests, hosts, [(DRAM, 2, CACHED)])
    assert all(row["remote_tokens"] for row in found.values())
    return stage


def lying(stage, blocks=A):
    return [stage.has(DRAM, node, blocks) for node in range(3)]


def test_what_is_new_is_written_beside_what_came_from_elsewhere():
    """Block 5 goes to node 2 over the NICs: 7 + 80 after 367."""
    stage = Stage(pooled_plan(2, (50, 50, 50)), [prompt(0, 0, A)], kept=[(DRAM, 2, CACHED)])
    assert stage.found_at(DRAM, 2, A) == 367 + 87
    assert stage.moves.written_over == {"nic_tx": 80, "nic_rx": 80, "dram": 80}
    assert lying(stage) == [0, 0, 5]
    assert stage.moves.counts["replicated"] == 0


def test_a_copy_is_written_from_hbm_as_a_whole():
    """All five blocks go over PCIe of node 0: 3 + 100 after 367."""
    nodes = pooled_plan(2, (50, 50, 50), replicate="always")
    stage = Stage(nodes, [prompt(0, 0, A)], kept=[(DRAM, 2, CACHED)])
    assert stage.found_at(DRAM, 0, A) == 367 + 103
    assert stage.moves.written_over == {"pcie_up": 400, "dram": 400}
    assert lying(stage) == [5, 0, 4]
    assert stage.moves.counts["replicated"] == 1


BOTTLENECKS = {
    "nobody else was there": ((0,), {}, 0),
    "the NIC of node 2 was shared": ((0, 0), {}, 2),
    "host memory was shared, not the NIC": ((0, 0), {"dram": 0.5}, 0),
}


@pytest.mark.parametrize("case", BOTTLENECKS)
def test_a_node_keeps_what_nics_held_back_because_others_used_them(case):
    starts, rates, copies = BOTTLENECKS[case]
    stage = fetched(starts, hosts=Hosts(rates), replicate="bottleneck")
    assert stage.moves.counts["replicated"] == copies
    assert lying(stage)[:2] == [5 if copies else 0] * 2


def twice(most, *prompts):
    """Two prompts one after the other, on nodes 0 and 1, each of which keeps what it got if it may."""
    nodes = pooled_plan(2, (50, 50, 50), replicate="always", max_copies=most)
    requests = [prompt(i, 2000 * i, blocks) for i, blocks in enumerate(prompts)]
    return staged(nodes, requests, kept=[(DRAM, 2, CACHED)])[0]


@pytest.mark.parametrize(("most", "copies"), [(1, 0), (2, 1), (3, 2), (None, 2)])
def test_no_more_copies_than_may_be(most, copies):
    stage = twice(most, A, (*CACHED, 6))
    assert stage.moves.counts["replicated"] == copies
    assert lying(stage, CACHED) == [4 * (copies > 0), 4 * (copies > 1), 4]


def test_a_block_that_may_be_copied_takes_those_before_it_along():
    """The fifth block lies on node 0 alone, so it may go to node 1; it is of no use without the others."""
    stage = twice(2, A, A)
    assert lying(stage) == [5, 5, 4]


def test_a_copy_that_finds_no_room_is_not_counted():
    stage = fetched(dram=(4, 50, 50), replicate="always")
    assert (stage.moves.counts["replicated"], stage.moves.counts["skipped"]) == (0, 1)
    assert lying(stage) == [0, 0, 4]


def test_nothing_is_copied_where_only_hbm_writes_when_it_evicts():
    stage = fetched(replicate="always", write="back")
    assert stage.moves.counts["replicated"] == 0
    assert lying(stage) == [0, 0, 4]


def test_a_copy_that_came_from_elsewhere_meanwhile_is_not_counted_twice():
    """Two prompts of node 0 fetch A at once; the second finds all of it there when it is done."""
    nodes = pooled_plan(1, (50, 50), replicate="always", limits={"max_batch_tokens": 4})
    requests = [prompt(0, 0, A), prompt(1, 1, A)]
    stage, found = staged(nodes, requests, kept=[(DRAM, 1, CACHED)])
    assert [found[i]["remote_tokens"] for i in (0, 1)] == [16, 16]
    assert stage.moves.counts["replicated"] == 1


@pytest.mark.parametrize(("at_ps", "is_found"), [(1000, True), (1001, False)])
def test_blocks_expire_when_nobody_has_touched_them_for_a_time(at_ps, is_found):
    stage, found = staged(
        pooled_plan(1, (50,), eviction="ttl", ttl_ps=1000, write="back"),
        [prompt(0, at_ps, A)],
        kept=[(DRAM, 0, CACHED)],
    )
    assert found[0]["dram_tokens"] == (16 if is_found else 0)
    assert stage.cache(DRAM, 0).cached == (4 if is_found else 0)


@pytest.mark.parametrize(("at_ps", "dram_tokens"), [(826, 19), (827, 0)])
def test_who_reads_or_writes_blocks_touches_them(at_ps, dram_tokens):
    """Kept at 0, read at 300, and with the fifth there at 300 + 83 + 40 + 3 + 20: they stay 380 more."""
    nodes = pooled_plan(1, (50,), eviction="ttl", ttl_ps=380)
    _, found = staged(nodes, [prompt(0, 300, A), prompt(1, at_ps, A)], kept=[(DRAM, 0, CACHED)])
    assert found[0]["dram_tokens"] == 16
    assert found[1]["dram_tokens"] == dram_tokens


def test_what_expires_while_it_is_read_goes_when_it_has_been():
    """Read from node 1 until 50 + 327; at 200 a look-up finds that it has not been touched since 50."""
    nodes = pooled_plan(1, (50, 50), eviction="ttl", ttl_ps=100, write="back")
    requests = [prompt(0, 50, A), prompt(1, 200, (9,)), prompt(2, 417, A)]
    stage = Stage(nodes, requests, kept=[(DRAM, 1, CACHED)])
    stage.play_until(376)
    assert stage.has(DRAM, 1, A) == 4
    found = stage.play()
    assert (found[0]["remote_tokens"], found[2]["remote_tokens"]) == (16, 0)
    assert stage.cache(DRAM, 1).cached == 0
    stage.assert_nothing_is_left()


def test_what_expires_goes_nowhere():
    nodes = pooled_plan(1, (50,), (50,), eviction="ttl", ttl_ps=1000)
    stage, found = staged(nodes, [prompt(0, 2000, A)], kept=[(DRAM, 0, CACHED)])
    assert found[0]["cached_tokens"] == 0
    assert stage.has(NVME, 0, A) == 0
    assert "nvme" not in stage.moves.written_bytes


def test_what_has_expired_makes_room_and_does_not_go_down():
    """A was touched at 0: it is there when B looks, at 950, and has expired when B is written, at 1150."""
    nodes = pooled_plan(1, (5,), (50,), eviction="ttl", ttl_ps=1000)
    stage, _ = staged(nodes, [prompt(0, 950, (11, 12, 13, 14, 15))], kept=[(DRAM, 0, A)])
    assert (stage.has(DRAM, 0, A), stage.has(NVME, 0, A)) == (0, 0)
    assert stage.moves.written_bytes == {"dram": 400}


@pytest.mark.parametrize(("at_ps", "cached"), [(1000, 4), (1001, 0)])
def test_what_has_expired_is_not_counted_as_cached(at_ps, cached):
    """Whether somebody has looked for it meanwhile or not."""
    nodes = pooled_plan(1, (50,), eviction="ttl", ttl_ps=1000)
    stage = Stage(nodes, [], kept=[(DRAM, 0, CACHED)])
    stage.clock.at(at_ps, 0)
    stage.play_until(at_ps)
    assert KvBooks.of(stage.moves).occupancy == (("dram", cached, 50),)
