"""The scenario of the measured pool against what was measured: hits to the block, TTFT within a few percent.

The constants of the engine profile (first length, cached tokens, start and rate of a fetch) were fitted on
these two runs, so this shows the quality of a fit; it is no validation.
"""

import csv
from pathlib import Path

import numpy as np
import pytest

from sim import api

ROOT = Path(__file__).parents[2]
SCENARIO = ROOT / "scenarios" / "measured" / "h200-pool.yaml"
BLOCK_TOKENS = 512


@pytest.fixture(scope="module")
def measured():
    lines = (ROOT / "tests" / "data" / "measured" / "h200-pool.csv").read_text().splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}


@pytest.fixture(scope="module")
def runs():
    return {
        "without": api.run(api.load(SCENARIO, ["kv_pool.policy=none"])),
        "with": api.run(api.load(SCENARIO, ["kv_pool.blocks=500"])),
    }


def test_hits_are_those_of_the_engine_to_the_block(measured, runs):
    assert (runs["with"].requests["cached_tokens"] == BLOCK_TOKENS * measured["cached_blocks"]).all()
    assert (runs["with"].requests["dram_tokens"] == BLOCK_TOKENS * measured["cached_blocks"]).all()
    assert not runs["without"].requests["cached_tokens"].any()
    assert measured["cached_blocks"].sum() == 1608


@pytest.mark.parametrize("kind", ["without", "with"])
@pytest.mark.parametrize("fraction", [0.5, 0.9])
def test_ttft_is_what_the_engine_took(measured, runs, kind, fraction):
    simulated = np.quantile(runs[kind].requests["ttft_s"], fraction)
    assert simulated == pytest.approx(np.quantile(measured[f"ttft_{kind}_s"], fraction), rel=0.05)


def test_a_smaller_pool_finds_less():
    found = [
        int(api.run(api.load(SCENARIO, [f"kv_pool.blocks={blocks}"])).requests["cached_tokens"].sum())
        for blocks in (50, 200, 500)
    ]
    assert found == sorted(found)
    assert found[0] < found[-1]


def test_requests_end_with_the_only_token_that_a_prefill_gives(runs):
    frame = runs["with"].requests
    assert (frame["status"] == "finished").all()
    assert (frame["output_tokens"] == 1).all()
    assert frame["tpot_s"].isna().all()
    assert (frame["e2e_s"] == frame["ttft_s"]).all()
