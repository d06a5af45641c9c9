"""The requests of a saved run, replayed."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from workload_parts import S, requests_of

from sim.workload.errors import TraceError
from sim.workload.request import Request


def saved(folder, **changes):
    columns = {
        "request_id": [2, 0, 1],
        "arrived_at_ps": [90 * S, 0, 1],
        "input_tokens": [600, 512, 1],
        "output_tokens": [3, 1, 2],
        "block_ids": [[0, 1], [0], None],
        "ttft_s": [1.0, 2.0, 3.0],
    } | changes
    pq.write_table(
        pa.table({name: value for name, value in columns.items() if value}), folder / "requests.parquet"
    )


def test_comes_back_in_order_of_arrival_however_far_out_of_order(tmp_path):
    saved(tmp_path)
    expected = [Request(0, 0, 512, 1, [0]), Request(1, 1, 1, 2, ()), Request(2, 90 * S, 600, 3, [0, 1])]
    assert requests_of(trace=str(tmp_path)) == expected
    assert requests_of(trace=str(tmp_path / "requests.parquet")) == expected


def test_without_block_ids_there_is_no_reuse(tmp_path):
    saved(tmp_path, block_ids=None)
    assert [request.blocks for request in requests_of(trace=str(tmp_path))] == [(), (), ()]


def test_a_missing_column_is_said(tmp_path):
    saved(tmp_path, arrived_at_ps=None)
    with pytest.raises(TraceError, match="no column arrived_at_ps") as caught:
        requests_of(trace=str(tmp_path))
    assert caught.value.hint == "give the requests.parquet of a saved run"


def test_a_missing_length_is_a_bad_row(tmp_path):
    saved(tmp_path, input_tokens=[600, None, 1])
    with pytest.raises(TraceError, match="input_tokens is empty, not a number"):
        requests_of(trace=str(tmp_path))


def test_what_is_no_parquet_is_said(tmp_path):
    (tmp_path / "requests.parquet").write_text("no")
    with pytest.raises(TraceError, match="cannot be read"):
        requests_of(trace=str(tmp_path))
