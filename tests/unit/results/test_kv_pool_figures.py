"""What a run says of its pool of KV blocks: hits by tier, what fetching cost and saved, the screen."""

from __future__ import annotations

import numpy as np
import pytest
import results_parts as parts

from sim.report.text import WIDTH, plain, screen
from sim.results.run import Run
from sim.tables.recorder import MemorySink
from sim.tables.uses import HotBlocks, KvPoolUse, TierUse

S, MS = parts.S, parts.MS
N = 400
USE = KvPoolUse(
    block_bytes=80_000_000,
    tiers=(
        TierUse(
            "dram", capacity_blocks=10_000, cached_blocks=7_500, read_bytes=2 * 10**12, written_bytes=10**12
        ),
        TierUse("nvme", capacity_blocks=90_000, cached_blocks=900, read_bytes=10**9, written_bytes=3 * 10**9),
    ),
    read_over={"dram": 2 * 10**12, "nic_tx": 10**12},
    written_over={"dram": 10**12},
    counts={"replicated": 12, "skipped": 3},
    hottest=(HotBlocks(first=17, blocks=8, reads=1234, copies=40),),
)


def run_with(use=USE, fetching=True):
    """Every fourth prompt is fetched: half of it from DRAM, an eighth from the NVMe of another node."""
    columns = parts.request_columns(N)
    prompt = columns["input_tokens"]
    is_fetched = (np.arange(N) % 4 == 0) & fetching
    columns["hbm_tokens"] = prompt // 10
    columns["dram_tokens"] = np.where(is_fetched, prompt // 2, 0)
    columns["nvme_tokens"] = np.where(is_fetched, prompt // 8, 0)
    columns["remote_tokens"] = columns["nvme_tokens"]
    columns["fetch_link"] = np.where(is_fetched, np.arange(N) % 5, -1)
    columns["fetch_waited_ps"] = np.where(is_fetched, 2 * MS, -1)
    columns["fetch_hidden_ps"] = np.where(is_fetched, 30 * MS, 0)
    columns["fetch_spared_ps"] = np.where(is_fetched, 200 * MS, 0)
    columns["phase_kv_fetch_ps"] = np.where(is_fetched, 10 * MS, 5 * MS)
    sink = MemorySink()
    sink.requests(columns, [[] for _ in range(N)])
    full = [(second * S, "kv_pool", "dram", "used_fraction", second / 60) for second in range(1, 61)]
    sink.samples([*parts.link_samples(), *full])
    return Run.from_sink(sink, parts.outcome(kv_pool=use), parts.scenario())


def test_hits_are_told_by_tier():
    run = run_with()
    pool, frame = run.figures["kv_pool"], run.requests
    prompt = frame["input_tokens"].sum()
    for tier in ("hbm", "dram", "nvme"):
        assert pool["hit_tokens"][tier] == frame[f"{tier}_tokens"].sum()
        assert pool["hit_fractions"][tier] == pytest.approx(frame[f"{tier}_tokens"].sum() / prompt)
    assert pool["tokens_not_recomputed"] == sum(pool["hit_tokens"].values())
    assert pool["remote_fraction"] == pytest.approx(
        pool["hit_tokens"]["nvme"] / pool["tokens_not_recomputed"]
    )


def test_a_fetch_costs_what_everybody_waits_for_it():
    fetches = run_with().figures["kv_pool"]["fetches"]
    assert fetches["requests"] == N / 4
    assert fetches["fraction"] == 0.25
    assert fetches["mean_s"] == pytest.approx(0.040)
    assert fetches["p99_s"] == pytest.approx(0.040)
    assert fetches["hidden_mean_s"] == pytest.approx(0.030)
    assert fetches["exposed_mean_s"] == pytest.approx(0.010)
    assert fetches["spared_mean_s"] == pytest.approx(0.200)
    assert fetches["net_mean_s"] == pytest.approx(0.200 - 0.010 - 3 * 0.005)
    assert [kind["kind"] for kind in fetches["held_back"]["kinds"]] == ["leaf_up"]
    assert sum(link["waited_fraction"] for link in fetches["held_back"]["links"]) == pytest.approx(1)


def test_without_fetches_nothing_is_made_up():
    fetches = run_with(fetching=False).figures["kv_pool"]["fetches"]
    assert fetches["requests"] == 0
    assert fetches["mean_s"] is fetches["net_mean_s"] is fetches["held_back"] is None


def test_tiers_are_told_with_their_fill_over_time():
    figures = run_with().figures
    dram = figures["kv_pool"]["tiers"][0]
    assert (dram["used_fraction"], dram["read_bytes"]) == (0.75, 2 * 10**12)
    course = figures["kv_pool_over_time"]["dram"]
    assert len(course) == 24
    assert course == sorted(course)


def test_without_a_pool_there_is_nothing_to_tell():
    run = run_with(use=None)
    assert run.figures["kv_pool"] is None
    assert not [line for line in screen(run.figures) if "KV pool" in plain(line)]


def test_the_screen_tells_it_within_its_width():
    lines = [plain(line) for line in screen(run_with().figures)]
    assert max(map(len, lines)) <= WIDTH
    text = "\n".join(lines)
    for said in (
        "by 25 % of requests: 40.0 ms mean, 40.0 ms p99, 30.0 ms hidden",
        "spared 200 ms of computing, 175 ms net",
        "DRAM            75 %    800 GB   2.00 TB   1.00 TB",
        "12 kept by the replica's node too, 3 not written for want of room",
        "8 blocks from id 17   fetched 1 234 times, on 40 places",
    ):
        assert said in text
