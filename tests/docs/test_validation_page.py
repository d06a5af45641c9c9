"""The tables of docs/validation.md are those of the stored rows, and the rows are those of today's model."""

import json
import sys
from pathlib import Path

import pytest

from sim.workload.errors import TraceError
from sim.workload.library import find_trace

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import measured_h200  # noqa: E402 - the tools are no package
import mooncake_fast25 as experiments  # noqa: E402 - the tools are no package
import validation_tables as tables  # noqa: E402

FOLDERS = ("tools/", "scenarios/", "tests/")
NEAR = 1e-4
"""Rows keep five digits."""


@pytest.fixture(scope="module")
def stored():
    return tables.stored_rows()


def played(name, paths, folder):
    return [
        experiments.rounded(row) for row in experiments.experiment[name](experiments.Traces(paths, folder))
    ]


def is_near(row, other):
    return row.keys() == other.keys() and all(
        value == (pytest.approx(other[key], rel=NEAR) if isinstance(value, float) else other[key])
        for key, value in row.items()
    )


def test_tables_are_those_of_the_rows(stored):
    page = tables.PAGE.read_text()
    assert tables.filled(page, stored) == page
    assert {found["name"] for found in tables.MARKED.finditer(page)} == set(tables.table)


def test_every_experiment_is_stored_with_where_it_comes_from(stored):
    assert set(stored) == {*experiments.experiment, "measured_pool", "measured_engine"}
    sources = [json.loads(path.read_text())["source"] for path in tables.DATA]
    assert all(len(trace["sha256"]) == 64 for trace in sources[0]["traces"].values())
    for source in sources:
        named = [value for value in source.values() if isinstance(value, str) and value.startswith(FOLDERS)]
        assert len(named) == 2
        assert all((ROOT / path).exists() for path in named)


def test_a_table_with_another_number_is_seen(stored):
    row = stored["scheduling"][0]
    changed = [row | {"ttft_mean_s": 2 * row["ttft_mean_s"]}, *stored["scheduling"][1:]]
    page = tables.PAGE.read_text()
    assert tables.filled(page, {**stored, "scheduling": changed}) != page


def test_rows_without_a_trace_are_current(stored, tmp_path):
    found = played("prefix", {}, tmp_path)
    assert len(found) == len(stored["prefix"])
    assert all(is_near(row, other) for row, other in zip(found, stored["prefix"], strict=True))


@pytest.mark.slow
@pytest.mark.trace
@pytest.mark.parametrize("name", ["reuse", "scheduling"])
def test_rows_of_a_trace_are_current(stored, name, tmp_path):
    try:
        paths = {"synthetic": find_trace("mooncake-synthetic")}
    except TraceError as absent:
        pytest.skip(f"NOT TESTED: {absent}")
    expected = [row for row in stored[name] if row["trace"] == "synthetic"]
    found = played(name, paths, tmp_path)
    assert len(found) == len(expected) > 1
    assert all(is_near(row, other) for row, other in zip(found, expected, strict=True))


@pytest.mark.slow
def test_rows_of_the_measured_runs_are_current(stored):
    remedy = "run: python tools/measured_h200.py && python tools/validation_tables.py"
    assert list(measured_h200.pool_rows()) == stored["measured_pool"], remedy
    assert list(measured_h200.engine_rows()) == stored["measured_engine"], remedy
