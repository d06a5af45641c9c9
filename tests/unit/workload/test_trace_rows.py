"""Rows put in order, hash ids checked, bad rows refused or counted."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workload_parts import MS, S, requests_of, write

from sim.base.streams import Streams
from sim.config.scenario import Workload as WorkloadForm
from sim.workload.build import build_workload
from sim.workload.errors import TraceError


def jsonl(rows):
    """Return Mooncake lines from (ms, input, output, ids) rows."""
    keys = ("timestamp", "input_length", "output_length", "hash_ids")
    return "".join(json.dumps(dict(zip(keys, row, strict=False))) + "\n" for row in rows)


def refused(path, **fields):
    with pytest.raises(TraceError) as caught:
        requests_of(trace=str(path), **fields)
    return str(caught.value)


def test_rows_out_of_order_within_the_window_are_sorted(tmp_path):
    path = write(
        tmp_path / "m.jsonl", jsonl([(3000, 1, 1), (1000, 2, 1), (2000, 3, 1), (2000, 4, 1), (9000, 5, 1)])
    )
    found = requests_of(trace=str(path), sort_window="2 s")
    assert [(request.id, request.arrived_ps, request.input_tokens) for request in found] == [
        (0, 1 * S, 2),
        (1, 2 * S, 3),
        (2, 2 * S, 4),
        (3, 3 * S, 1),
        (4, 9 * S, 5),
    ]


def test_rows_further_out_of_order_are_refused_with_their_line(tmp_path):
    path = write(tmp_path / "m.jsonl", jsonl([(3000, 1, 1), (999, 2, 1)]))
    assert refused(path, sort_window="2 s") == (
        f"{path}:2: arrives 2.001 s before a row above it; workload.sort_window is 2 s\n"
        "  hint: sort the file, or set workload.sort_window to 2.001 s or more, "
        "or set workload.on_bad_row: skip"
    )


def test_azure_rows_before_the_first_start_the_clock(tmp_path):
    lines = ["2023-11-16 18:00:05.0,5,1", "2023-11-16 18:00:03.0,3,1", "2023-11-16 18:00:09.0,9,1"]
    path = write(tmp_path / "a.csv", "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "\n".join(lines))
    found = requests_of(trace=str(path))
    assert [(request.arrived_ps, request.input_tokens) for request in found] == [
        (0, 3),
        (2 * S, 5),
        (6 * S, 9),
    ]


def test_hash_ids_that_do_not_fit_are_refused(tmp_path):
    path = write(tmp_path / "m.jsonl", jsonl([(0, 1600, 1, [0, 1, 2, 3]), (1, 513, 1, [0])]))
    assert refused(path) == (
        f"{path}:2: 1 hash_ids for 513 input tokens; blocks of 512 tokens need 2\n"
        "  hint: mend the row, or set workload.on_bad_row: skip"
    )


def test_another_block_size_that_fits_all_rows_is_proposed_and_works(tmp_path):
    rows = [(0, 33, 1, [0, 1, 2]), (1, 16, 1, [0]), (2, 17, 1, [0, 3])]
    path = write(tmp_path / "m.jsonl", jsonl(rows))
    assert refused(path) == (
        f"{path}:1: 3 hash_ids for 33 input tokens; blocks of 512 tokens need 1\n"
        "  hint: all rows fit blocks of 16 tokens: set workload.block_tokens: 16"
    )
    workload = build_workload(WorkloadForm(trace=str(path), block_tokens=16), Streams(1))
    assert workload.block_tokens == 16
    assert [request.blocks for request in workload] == [[0, 1, 2], [0], [0, 3]]


def test_bad_rows_are_skipped_and_counted_where_asked(tmp_path):
    text = jsonl([(0, 5, 1), (1, 0, 1), (2, 7, 1, [1, 2])]) + "what\n" + jsonl([(3, 8, 1)])
    path = write(tmp_path / "m.jsonl", text)
    workload = build_workload(WorkloadForm(trace=str(path), on_bad_row="skip"), Streams(1))
    for _ in range(2):
        assert [(request.id, request.input_tokens) for request in workload] == [(0, 5), (1, 8)]
        assert workload.skipped_rows == 3


def test_a_file_without_one_usable_row_is_refused_even_when_skipping(tmp_path):
    path = write(tmp_path / "m.jsonl", jsonl([(0, 16, 1, [0, 1]), (0, 17, 1, [0, 1, 2])]))
    assert refused(path, on_bad_row="skip") == (
        f"{path}:1: none of 2 rows can be used; "
        "here: 2 hash_ids for 16 input tokens; blocks of 512 tokens need 1\n"
        "  hint: all rows fit blocks of 8 tokens: set workload.block_tokens: 8"
    )


@given(
    late=st.lists(st.integers(0, 500), min_size=1, max_size=60),
    step=st.integers(0, 300),
)
def test_whatever_the_disorder_all_rows_come_once_in_order(late, step, tmp_path_factory):
    times = [500 + step * place - delay for place, delay in enumerate(late)]
    path = write(
        tmp_path_factory.mktemp("t") / "m.jsonl",
        jsonl([(at, 1 + place, 1) for place, at in enumerate(times)]),
    )
    found = requests_of(trace=str(path), sort_window="500 ms")
    assert [request.id for request in found] == list(range(len(times)))
    assert [request.arrived_ps for request in found] == [at * MS for at in sorted(times)]
    assert [request.input_tokens - 1 for request in found] == sorted(
        range(len(times)), key=lambda place: times[place]
    )


def test_limit_and_end(tmp_path):
    path = write(tmp_path / "m.jsonl", jsonl([(at, 1, 1) for at in (0, 10, 20, 30)]))
    assert len(requests_of(trace=str(path), limit=3)) == 3
    assert [request.arrived_ps for request in requests_of(trace=str(path), until_ps=20 * MS)] == [0, 10 * MS]
