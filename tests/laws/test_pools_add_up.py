"""What holds of every run with a pool, whatever its rules: tokens and bytes add up, nothing is left behind.

Small pools on three to five nodes, everything drawn: tiers, rules, choices, and nodes that are lost.
"""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from models.hosts import Hosts, Stage, drawn_pool
from models.play import drawn_plan, drawn_requests

from sim.kvpool.pool import TIERS
from sim.serving.plan import HostTimes
from sim.tables.schema import STATUSES

FINISHED, REJECTED, CANCELLED = (STATUSES.index(name) for name in ("finished", "rejected", "cancelled"))
SEEDS = 12
NETWORK = ("nic_tx", "nic_rx")


def ready(seed, lost, leaving=0.0):
    """A drawn run in which nothing has happened yet, and its requests, some of which are taken back."""
    dice = Random(seed)
    prefills, decodes = dice.randint(2, 3), dice.randint(1, 2)
    nodes, ranks = prefills + decodes, dice.choice((1, 1, 2))
    places = range(prefills), range(prefills, nodes)
    plan = drawn_plan(dice, places, (ranks, 1), ranks, ranks, kv_grain_bytes=ranks)
    plan = drawn_pool(dice, plan, nodes, lost)
    host = HostTimes(prefill_ps=dice.choice((0, 0, 4)), send_ps=dice.choice((0, 0, 6)))
    plan = replace(
        plan,
        prefill=replace(plan.prefill, gpus_per_replica=ranks, host=host),
        reserves_first=dice.random() < 0.3,
        handoff_start_ps=dice.choice((0, 0, 9)),
    )
    requests = drawn_requests(dice, 60, plan.block_tokens)
    if leaving:
        plan = replace(plan, cancels=True)
        requests = [
            one._replace(cancelled_after_ps=dice.randint(1, 900)) if dice.random() < leaving else one
            for one in requests
        ]
    return Stage(plan, requests, Hosts()), requests


def played(seed, lost, leaving=0.0):
    """A drawn run, with all memories looked at after every few events."""
    stage, requests = ready(seed, lost, leaving)
    while stage.clock.advance(3):
        look_at_memories(stage)
    return stage, stage.rows(), requests


def look_at_memories(stage):
    for cache in [*stage.pool.caches, *(replica.memory for replica in stage.serving.prefill.replicas)]:
        assert cache.free >= 0
        assert cache.claimed >= 0
        assert cache.cached >= 0
        assert cache.free + cache.claimed + cache.cached == cache.capacity


def check_tokens(stage, found, requests):
    """What need not be computed was somewhere; the rest was computed."""
    for row in found.values():
        by_tier = row["hbm_tokens"] + row["dram_tokens"] + row["nvme_tokens"]
        assert row["cached_tokens"] == by_tier < row["input_tokens"]
        assert 0 <= row["remote_tokens"] <= row["dram_tokens"] + row["nvme_tokens"]
        assert (row["fetch_link"] >= 0) == (row["dram_tokens"] + row["nvme_tokens"] > 0)
        assert min(row[name] for name in row if name.startswith("phase_")) >= 0
        assert min(row["fetch_hidden_ps"], row["transfer_hidden_ps"], row["fetch_spared_ps"]) >= 0
        assert row["remote_tokens"] == 0 or stage.pool.is_shared
    computed = sum(replica.tokens for replica in stage.serving.prefill.replicas)
    served = [row for row in found.values() if row["status"] == FINISHED]
    assert computed == sum(row["input_tokens"] - row["cached_tokens"] for row in served)
    assert len(served) + sum(stage.serving.rejected.values()) == len(requests) == len(found)


def check_reads(stage, found):
    """Whole blocks are read, for as many tokens as they are good for; a copy to another node is read, too."""
    block_tokens, block_bytes = stage.serving.plan.block_tokens, stage.moves.ways.block_bytes
    for tier in TIERS:
        tokens = [row[f"{tier}_tokens"] for row in found.values() if row[f"{tier}_tokens"]]
        read = stage.moves.read_bytes[tier]
        assert read % block_bytes == 0
        least = sum(tokens) / block_tokens * block_bytes
        assert read >= least - 1e-9
        if not stage.moves.counts["rebalanced"]:
            assert read <= least + len(tokens) * 2 * block_bytes


def by_kind(stage):
    carried = Counter()
    for name, size in stage.hosts.carried().items():
        carried[name.split()[-1]] += size
    return carried


def check_bytes(stage, found, is_whole):
    """Links carried what was read, written and handed over; besides that only what was broken off."""
    handed_over = Counter()
    for row in found.values():
        if row["status"] == FINISHED and row["decode_replica"] >= 0:
            size = stage.serving.plan.kv_bytes(row["input_tokens"])
            handed_over.update(dict.fromkeys(NETWORK, size))
    booked = stage.moves.read_over + stage.moves.written_over + handed_over
    carried = by_kind(stage)
    assert set(booked) <= set(carried)
    for kind, size in carried.items():
        if is_whole:
            assert size == pytest.approx(booked[kind])
        else:
            assert size >= booked[kind] * (1 - 1e-9)


@pytest.mark.parametrize("first_seed", range(0, 3 * SEEDS, SEEDS))
def test_tokens_and_bytes_add_up(first_seed):
    for seed in range(first_seed, first_seed + SEEDS):
        stage, found, requests = played(seed, lost=False)
        try:
            stage.assert_nothing_is_left()
            check_tokens(stage, found, requests)
            check_reads(stage, found)
            check_bytes(stage, found, is_whole=True)
        except AssertionError as wrong:
            wrong.add_note(f"seed {seed}")
            raise


@pytest.mark.parametrize("first_seed", range(1000, 1000 + 3 * SEEDS, SEEDS))
def test_they_do_where_nodes_are_lost_and_nothing_hangs(first_seed):
    for seed in range(first_seed, first_seed + SEEDS):
        stage, found, requests = played(seed, lost=True)
        try:
            stage.assert_nothing_is_left()
            check_tokens(stage, found, requests)
            check_bytes(stage, found, is_whole=not stage.moves.counts["broken"])
            for place in stage.pool.places:
                if place.node in stage.pool.lost:
                    assert stage.cache(*place).cached == 0
        except AssertionError as wrong:
            wrong.add_note(f"seed {seed}")
            raise


def test_users_who_leave_leave_nothing_behind():
    """While their prompt waits, its blocks are fetched, it is computed, or its KV is streamed or saved."""
    left = Counter()
    for seed in range(2 * SEEDS):
        stage, found, requests = played(seed, lost=seed % 2, leaving=0.4)
        stage.assert_nothing_is_left()
        for replica in stage.serving.decode.replicas:
            assert replica.free_pages == stage.serving.decode.capacity_pages
        assert len(found) == len(requests)
        for row in found.values():
            assert min(row[name] for name in row if name.startswith("phase_")) >= 0
            if row["status"] == CANCELLED:
                left["fetched"] += row["dram_tokens"] + row["nvme_tokens"] > 0
                left["computed"] += row["phase_prefill_ps"] > 0
                left["streamed"] += row["transfer_hidden_ps"] > 0
                left["queued"] += row["phase_queue_ps"] > 0 and row["phase_prefill_ps"] == 0
    assert min(left[name] for name in ("fetched", "computed", "streamed", "queued")) >= 3, left


def test_phases_of_a_run_that_is_stopped_add_up_to_now():
    """Wherever it is stopped: while blocks are fetched, prompts computed or KV streamed."""
    for seed in range(3 * SEEDS):
        stage, _ = ready(seed, lost=seed % 2)
        stop_ps = Random(seed).randint(100, 1500)
        stage.clock.stop_after(stop_ps)
        for row in stage.play().values():
            if row["status"] == REJECTED:
                continue
            phases = [row[name] for name in row if name.startswith("phase_")]
            end_ps = row["finished_ps"] if row["finished_ps"] >= 0 else stage.clock.now
            assert min(phases) >= 0
            assert sum(phases) == end_ps - row["arrived_ps"]


def test_the_drawn_runs_have_what_is_hard():
    """Each kind of hit, move and loss, in some of the runs."""
    seen = Counter()
    for seed in range(1000, 1040):
        stage, found, _ = played(seed, lost=True)
        rows, moves = list(found.values()), stage.moves
        for name in ("hbm_tokens", "dram_tokens", "nvme_tokens", "remote_tokens", "fetch_hidden_ps"):
            seen[name] += any(row[name] for row in rows)
        for name in ("transfer_hidden_ps", "fetch_waited_ps", "phase_reserve_ps"):
            seen[name] += any(row[name] > 0 for row in rows)
        for name in ("skipped", "replicated", "rebalanced", "broken", "recomputed"):
            seen[name] += moves.counts[name] > 0
        seen["moved down"] += moves.written_bytes["nvme"] > 0
        seen["read from NVMe of another node"] += any(
            row["nvme_tokens"] and row["remote_tokens"] for row in rows
        )
    assert len(seen) == 15
    assert min(seen.values()) >= 3, seen
