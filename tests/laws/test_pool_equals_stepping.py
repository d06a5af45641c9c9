"""Runs with a pool of KV blocks, against a model that does everything one by one.

Compared is everything that can be seen of a request, what lies where at the end, and what was counted.
"""

from collections import Counter
from copy import copy
from dataclasses import replace
from random import Random

import pytest
from models.comparing import seeded, told
from models.hosts import Hosts, Stage, drawn_pool
from models.play import drawn_plan, drawn_requests
from models.poolsteps import DRAM, NVME, PoolStepModel

RATES = {
    "pcie_down": 1301 / 512,
    "pcie_up": 1181 / 512,
    "dram": 1427 / 64,
    "nic_tx": 1009 / 1024,
    "nic_rx": 1213 / 1024,
    "nvme": 1471 / 2048,
    "nvlink": 1483 / 16,
}
"""Primes over powers of two: exact as floats, and no transfer ends on a whole picosecond by chance."""


def told_of(story):
    """The row that a story of the naive model should leave behind."""
    shown = copy(story)
    if story.reserved is not None:
        shown.reserved = max(story.reserved, story.computed)
    row = told(shown)
    row["phase_kv_fetch_ps"] = story.exposed
    row["phase_prefill_ps"] -= story.exposed
    tier = story.source[0] if story.source is not None else None
    return row | {
        "hbm_tokens": story.hbm_tokens,
        "dram_tokens": story.fetched_tokens if tier == DRAM else 0,
        "nvme_tokens": story.fetched_tokens if tier == NVME else 0,
        "remote_tokens": story.remote_tokens,
        "fetch_hidden_ps": story.fetch_hidden,
        "fetch_spared_ps": story.spared,
        "transfer_hidden_ps": story.transfer_hidden,
    }


def drawn(seed):
    """A plan with one or two tiers, and requests."""
    dice = Random(seed)
    prefills, decodes = dice.randint(1, 3), dice.randint(1, 2)
    nodes = prefills + decodes
    plan = drawn_plan(dice, (range(prefills), range(prefills, nodes)))
    plan = drawn_pool(dice, plan, nodes, lost=dice.random() < 0.6)
    kv = plan.kv
    simpler = {
        "rebalance_ps": None,
        "fetch_bytes_per_s": None,
        "save_bytes_per_s": None,
        "keeps_partial": True,
        "replicate": "always" if kv.replicate == "bottleneck" else kv.replicate,
    }
    plan = replace(plan, kv=replace(kv, **simpler))
    return plan, drawn_requests(dice, 30, plan.block_tokens)


def compare(seed):
    plan, requests = drawn(seed)
    stage = Stage(plan, requests, Hosts(RATES))
    found = stage.play()
    naive = PoolStepModel(plan, requests, Hosts(RATES))
    assert list(found) == naive.order
    for number, row in found.items():
        expected = told_of(naive.stories[number])
        assert {name: row[name] for name in expected} == expected
    for real, cache in zip(stage.pool.caches, naive.pool.caches, strict=True):
        assert list(real.contents()) == cache.cached_ids
        assert (real.claimed, cache.claimed) == (0, 0)
    counted = stage.moves.counts
    assert (counted["skipped"], counted["replicated"]) == (naive.skipped, naive.replicated)
    return stage, found


@pytest.mark.parametrize("first_seed", range(0, 40, 10))
def test_every_request_has_the_life_that_one_step_after_the_other_gives_it(first_seed):
    for seed in range(first_seed, first_seed + 10):
        with seeded(seed):
            compare(seed)


@pytest.mark.slow
def test_the_drawn_runs_have_what_is_hard():
    """Fetches that wait, hide, are not worth while or break off; copies; streams; memory granted late."""
    seen = Counter()
    for seed in range(60):
        with seeded(seed):
            stage, found = compare(seed)
        rows, moves, kv = list(found.values()), stage.moves, stage.serving.plan.kv
        for name in ("hbm_tokens", "dram_tokens", "nvme_tokens", "remote_tokens", "fetch_hidden_ps"):
            seen[name] += any(row[name] for row in rows)
        seen["streams"] += any(row["transfer_hidden_ps"] for row in rows)
        seen[kv.eviction] += sum(moves.written_bytes.values()) > 0
        seen["written back"] += kv.write == "back" and moves.written_bytes["dram"] > 0
        seen["moved down"] += moves.written_bytes["nvme"] > 0
        for name in ("skipped", "replicated", "broken", "recomputed"):
            seen[name] += moves.counts[name] > 0
        seen["fetches that share"] += any(row["fetch_waited_ps"] > 1 for row in rows)
        seen["memory granted while streams go on"] += kv.streams and any(
            row["phase_reserve_ps"] > 0 and row["transfer_hidden_ps"] == 0 for row in rows
        )
        seen["own node alone"] += not kv.is_shared and any(row["dram_tokens"] for row in rows)
        seen["written on second use"] += kv.write == "second_use" and moves.written_bytes["dram"] > 0
        batches = Counter(
            (row["prefill_replica"], row["arrived_ps"] + row["phase_queue_ps"])
            for row in rows
            if row["dram_tokens"]
        )
        seen["fetches of one batch"] += max(batches.values(), default=0) > 1
    assert len(seen) == 21
    assert min(seen.values()) >= 2, seen
