"""The served runs of H200: their data are those that were measured, and the roofline is near them."""

import csv
import gzip
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from sim import api
from sim.validate.rows import rows_of
from sim.validate.servedh200 import NEEDED, RUNS, served_h200
from sim.validate.sets import DATA

ROOT = Path(__file__).parents[3]
COLUMNS = {"prefill-alone": "ttft_without_s", "prefill-with-pool": "ttft_with_s"}
FILES = {"prefill-alone": "h200-pool.csv", "prefill-with-pool": "h200-pool.csv"}


def test_the_percentiles_are_those_of_the_single_requests():
    rows = rows_of(DATA / "h200-runs.csv", NEEDED)
    assert {row.text("run") for row in rows} == set(RUNS)
    for row in rows:
        name, metric = row.text("run"), row.text("metric")
        path = ROOT / "tests" / "data" / "measured" / FILES.get(name, f"h200-{name}.csv")
        lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
        took = [float(each[COLUMNS.get(name, f"{metric}_s")]) for each in csv.DictReader(lines)]
        assert row.number("measured_s") == pytest.approx(
            np.nanquantile(took, row.number("fraction")), rel=1e-5
        )


@pytest.mark.parametrize("requests", ["light", "long", "pool"])
def test_the_requests_are_those_of_the_scenarios_with_measured_times(requests):
    there = ROOT / "scenarios" / "measured" / f"h200-{requests}-requests.jsonl"
    assert gzip.decompress((DATA / f"h200-{requests}.jsonl.gz").read_bytes()) == there.read_bytes()


@pytest.mark.parametrize(
    ("ours", "measured"),
    [("colocated", "colocated"), ("disagg", "disagg"), ("prefill", "pool")],
)
def test_the_scenarios_are_those_with_measured_times_but_for_these(ours, measured):
    here = api.load(DATA / f"h200-{ours}.yaml")
    there = api.load(ROOT / "scenarios" / "measured" / f"h200-{measured}.yaml", ["timing=null"])
    for key in ("model", "engine", "timing", "pools", "router", "kv_pool", "run"):
        assert getattr(here, key) == getattr(there, key), key
    assert here.timing.kind == "roofline"


def test_requests_take_what_was_measured_within_fifteen_percent():
    rows = list(served_h200(DATA))
    assert len(rows) == 22
    assert all(row.fitted for row in rows)
    assert max(abs(row.error) for row in rows) < 0.15
    assert median(abs(row.error) for row in rows) < 0.07
