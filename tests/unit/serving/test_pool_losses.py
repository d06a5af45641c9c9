"""Nodes whose part of the pool is lost, by hand: what was on its way, who recomputes, what is left behind.

Four blocks of A lie on another node: 320 bytes at 1 a picosecond after 7 of latency. Computing A takes 200.
"""

from dataclasses import replace

import pytest
from models.hosts import Hosts, Stage, pooled_plan, prompt, staged

from sim.kvpool.pool import DRAM, NVME
from sim.serving.plan import HostTimes, LostPart

A = (1, 2, 3, 4, 5)
CACHED = A[:4]
B = (11, 12, 13, 14, 15)


def lost(*times, nodes=1, dram=(50, 50), nvme=(), **kv):
    return pooled_plan(nodes, dram, nvme, lost=tuple(LostPart(at, node) for at, node in times), **kv)


@pytest.mark.parametrize(("at_ps", "moved"), [(8, 1), (107, 100), (326, 319)])
@pytest.mark.parametrize("overlaps", [False, True])
def test_a_fetch_from_a_node_that_is_lost_is_broken_off_and_all_is_computed(at_ps, moved, overlaps):
    nodes = lost((at_ps, 1), overlaps=overlaps, layers=4)
    stage, found = staged(nodes, [prompt(0, 0, A)], kept=[(DRAM, 1, CACHED)])
    row = found[0]
    assert (row["phase_kv_fetch_ps"], row["phase_prefill_ps"], row["finished_ps"]) == (
        at_ps,
        200,
        at_ps + 200,
    )
    assert [row[f"{name}_tokens"] for name in ("cached", "dram", "remote")] == [0, 0, 0]
    assert (row["fetch_link"], row["fetch_spared_ps"], row["fetch_hidden_ps"]) == (-1, 0, 0)
    assert stage.moves.counts["broken"] == 1
    assert stage.moves.read_bytes == {}
    assert stage.hosts.carried()["node 1 nic_tx"] == stage.hosts.carried()["node 0 nic_rx"] == moved
    assert stage.has(DRAM, 0, A) == 5


def test_a_fetch_that_was_not_under_way_yet_finds_out_when_it_begins():
    stage, found = staged(lost((5, 1)), [prompt(0, 0, A)], kept=[(DRAM, 1, CACHED)])
    assert (found[0]["phase_kv_fetch_ps"], found[0]["phase_prefill_ps"]) == (7, 200)
    assert "node 1 nic_tx" not in stage.hosts.carried()


def test_a_fetch_that_ends_at_the_same_instant_has_arrived():
    stage, found = staged(lost((327, 1)), [prompt(0, 0, A)], kept=[(DRAM, 1, CACHED)])
    assert (found[0]["remote_tokens"], found[0]["finished_ps"]) == (16, 367)
    assert stage.moves.counts["broken"] == 0


def test_after_that_nobody_finds_anything_there():
    stage, found = staged(lost((10, 1)), [prompt(0, 20, A)], kept=[(DRAM, 1, CACHED)])
    assert (found[0]["phase_kv_fetch_ps"], found[0]["phase_prefill_ps"]) == (0, 200)
    assert stage.moves.counts["broken"] == 0
    assert list(stage.pool.occupancy()) == [("dram", 5, 50)]


def test_what_hbm_has_stays_cached():
    """Two blocks in HBM, two of node 1 are lost after 50 of 160 bytes: three are computed."""
    nodes = lost((1057, 1), hbm=True, write="back")
    _, found = staged(nodes, [prompt(0, 0, A[:2]), prompt(1, 1000, A)], kept=[(DRAM, 1, CACHED)])
    assert found[1]["hbm_tokens"] == found[1]["cached_tokens"] == 8
    assert (found[1]["phase_kv_fetch_ps"], found[1]["phase_prefill_ps"]) == (57, 120)


def test_others_of_its_batch_keep_what_they_fetched():
    """Three prompts from 40 on: A of node 1, which is lost at 100, B's first four of node 0, and one new."""
    nodes = lost((100, 1), write="back")
    requests = [prompt(0, 0, (99,)), prompt(1, 1, A), prompt(2, 2, B), prompt(3, 3, (8,))]
    _, found = staged(nodes, requests, kept=[(DRAM, 1, CACHED), (DRAM, 0, B[:4])])
    assert [found[i]["cached_tokens"] for i in (1, 2, 3)] == [0, 16, 0]
    fetched_ps = 40 + 83
    for number in (1, 2, 3):
        assert found[number]["phase_kv_fetch_ps"] == fetched_ps - 40
        assert found[number]["finished_ps"] == fetched_ps + 200 + 40 + 40


@pytest.mark.parametrize("streams", [False, True])
def test_a_save_to_a_node_that_is_lost_is_broken_off_and_hbm_is_free(streams):
    """Room for one prompt in HBM: the second one is admitted when the first save is broken off."""
    nodes = lost((253, 0) if not streams else (150, 0), hbm_blocks=5, streams=streams, layers=4)
    stage, found = staged(nodes, [prompt(0, 0, A), prompt(1, 0, B)])
    assert found[1]["phase_queue_ps"] == (200 if streams else 253)
    assert stage.moves.counts["broken"] == 1
    moved = stage.hosts.carried()["node 0 pcie_up"]
    assert moved == pytest.approx(300 * (150 - 53) / (200 - 53) if streams else 4 * (253 - 203))
    assert stage.moves.written_bytes == {}


def test_what_is_new_stays_at_home_when_its_source_is_lost_meanwhile():
    """Fetched by 327 from node 1, which is lost at 340; computed at 367, all five are written to node 0."""
    stage, found = staged(lost((340, 1)), [prompt(0, 0, A)], kept=[(DRAM, 1, CACHED)])
    assert (found[0]["remote_tokens"], found[0]["finished_ps"]) == (16, 367)
    assert stage.has(DRAM, 0, A) == 5
    assert stage.moves.counts["replicated"] == stage.moves.counts["broken"] == 0


def test_a_move_down_to_nvme_of_a_node_that_is_lost_is_broken_off():
    """B drives A out at 1200; 295 of 800 ps later both tiers are gone, B with them."""
    nodes = lost((1500, 0), dram=(5,), nvme=(50,))
    stage, found = staged(nodes, [prompt(0, 0, A), prompt(1, 1000, B), prompt(2, 2000, A)])
    assert stage.moves.counts["broken"] == 1
    assert stage.hosts.carried()["node 0 nvme"] == 295 * 0.5
    assert found[2]["cached_tokens"] == 0
    assert stage.moves.written_bytes == {"dram": 800}


def test_moves_that_wait_for_one_another_are_all_given_up():
    """The branch waits for A, which does not come."""
    nodes = lost((1600, 0), dram=(6,), nvme=(50,), fetch="never")
    long = (41, 42, 43, 44, 45, 46)
    requests = [prompt(0, 0, A), prompt(1, 500, (1, 2, 31)), prompt(2, 1000, long)]
    stage, _ = staged(nodes, requests)
    assert stage.moves.counts["broken"] == 1
    assert stage.has(NVME, 0, A) == 0
    assert stage.moves._moving == {} == stage.serving.prefill.flows.saving._coming


def test_other_flows_get_the_share_of_one_that_is_broken_off():
    """Two fetches into node 0, of nodes 1 and 2, have half of its NIC each until 107, then one has it."""
    hosts = Hosts({"nic_rx": 1.0, "nic_tx": 4.0})
    nodes = pooled_plan(1, (50, 50, 50), lost=(LostPart(107, 1),), write="back")
    requests = [prompt(0, 0, (99,)), prompt(1, 1, A), prompt(2, 2, B)]
    kept = [(DRAM, 1, CACHED), (DRAM, 2, B[:4])]
    stage = Stage(nodes, requests, hosts, kept)
    found = stage.play()
    begins_ps = 40 + 7
    left = 320 - (107 - begins_ps) / 2
    assert found[2]["phase_kv_fetch_ps"] == 107 + left - 40
    assert stage.hosts.carried()["node 1 nic_tx"] == 30
    stage.assert_nothing_is_left()


def test_what_a_batch_costs_besides_is_paid_once_when_its_fetch_breaks_off():
    """5 of the host and 30 for the first prompt of a length: 107 + 200 + 35 instead of 327 + 40 + 35."""
    for times, took_ps in (((), 327 + 40 + 35), (((107, 1),), 107 + 200 + 35)):
        nodes = lost(*times)
        prefill = replace(nodes.prefill, first_length_ps=30, host=HostTimes(prefill_ps=5))
        _, found = staged(replace(nodes, prefill=prefill), [prompt(0, 0, A)], kept=[(DRAM, 1, CACHED)])
        assert found[0]["finished_ps"] == took_ps


def test_whoever_waits_decides_when_all_have_been_told():
    """HBM has room for two prompts. Two that are computed at 400 are saved when the node is lost at 503.

    Both let go of their blocks then, so the two that wait are computed as one batch.
    """
    nodes = lost((503, 0), hbm_blocks=10, fetch="never")
    waiting = (21, 22, 23, 24, 25), (31, 32, 33, 34, 35)
    requests = [prompt(i, int(i > 1), blocks) for i, blocks in enumerate((A, B, *waiting))]
    stage, found = staged(nodes, requests)
    assert stage.moves.counts["broken"] == 2
    assert [found[i]["phase_queue_ps"] for i in (2, 3)] == [502, 502]
    assert [found[i]["finished_ps"] for i in range(4)] == [400, 400, 903, 903]
