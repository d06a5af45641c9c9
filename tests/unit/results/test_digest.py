"""The digest: the same wherever the rows went, different when any integer differs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import results_parts as parts

from sim.results.run import Run
from sim.tables.digest import RunDigest
from sim.tables.schema import REQUEST_COLUMNS, SEGMENT_COLUMNS
from sim.tables.sinks import ParquetSink


def digest(requests, segments, pieces=1):
    found = RunDigest()
    for part in np.array_split(np.arange(len(requests["request_id"])), pieces):
        found.add_requests({name: column[part] for name, column in requests.items()})
    for part in np.array_split(np.arange(len(segments["replica"])), pieces):
        found.add_segments({name: column[part] for name, column in segments.items()})
    return found.text()


def test_chunk_sizes_do_not_matter():
    requests, segments = parts.request_columns(100), parts.segment_columns(100)
    assert len({digest(requests, segments, pieces) for pieces in (1, 3, 10)}) == 1


@pytest.mark.parametrize("name", REQUEST_COLUMNS)
def test_every_column_of_requests_counts(name):
    requests, segments = parts.request_columns(10), parts.segment_columns(10)
    before = digest(requests, segments)
    requests[name][4] += 1
    assert digest(requests, segments) != before


@pytest.mark.parametrize("name", SEGMENT_COLUMNS)
def test_every_column_of_segments_counts(name):
    requests, segments = parts.request_columns(10), parts.segment_columns(10)
    before = digest(requests, segments)
    segments[name][4] += 1
    assert digest(requests, segments) != before


def test_the_order_of_rows_counts():
    requests, segments = parts.request_columns(10), parts.segment_columns(10)
    turned = {name: np.ascontiguousarray(column[::-1]) for name, column in requests.items()}
    assert digest(turned, segments) != digest(requests, segments)


def test_the_sink_does_not_matter(tmp_path):
    streamed = ParquetSink(tmp_path)
    parts.fill(streamed, 300)
    kept = Run.from_sink(parts.sink(300), parts.outcome(), parts.scenario())
    assert Run.from_sink(streamed, parts.outcome(), parts.scenario()).digest == kept.digest


def test_another_process_with_another_hash_seed_gives_the_same():
    code = (
        "import results_parts as parts; from sim.results.run import Run; "
        "print(Run.from_sink(parts.sink(50), parts.outcome(), parts.scenario()).digest)"
    )
    here = Path(__file__).parent
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            text=True,
            cwd=here.parents[2],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": f"{here}:{here.parents[2]}"},
        ).stdout
        for seed in ("1", "2")
    }
    assert found == {Run.from_sink(parts.sink(50), parts.outcome(), parts.scenario()).digest + "\n"}
