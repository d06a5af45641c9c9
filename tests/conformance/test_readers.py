"""Every registered trace format: five rows of our own, read alike plain, packed and twice."""

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sim.base.streams import Streams
from sim.config.scenario import Workload as WorkloadForm
from sim.workload.build import build_workload
from sim.workload.readers import guess_format, reader
from sim.workload.rows import Row
from sim.workload.source import TraceFile

DATA = Path(__file__).parents[1] / "data"
PACKABLE = sorted(set(reader.names()) - {"run"})


@pytest.fixture
def samples(tmp_path):
    folder = tmp_path / "a-run"
    folder.mkdir()
    columns = {
        "request_id": [0, 1, 2, 3, 4],
        "arrived_at_ps": [0, 5, 5, 10**12, 2 * 10**12],
        "input_tokens": [10, 600, 512, 1, 2],
        "output_tokens": [1, 2, 3, 4, 5],
        "block_ids": [[0], [0, 1], [0], [7], []],
        "ttft_s": [0.1] * 5,
    }
    pq.write_table(pa.table(columns), folder / "requests.parquet")
    found = {path.stem: path for path in DATA.iterdir() if path.stem in reader}
    return {**found, "run": folder}


@pytest.mark.parametrize("name", reader.names())
class TestReader:
    def test_reads_its_five_rows_in_order(self, name, samples):
        rows = list(reader[name](TraceFile(samples[name])))
        assert [type(row) for row in rows] == [Row] * 5
        assert [row.at_ps for row in rows] == sorted(row.at_ps for row in rows)
        assert all(row.input_tokens >= 1 and row.output_tokens >= 1 and row.at_ps >= 0 for row in rows)
        assert len({row.line for row in rows}) == 5

    def test_is_recognised(self, name, samples):
        assert guess_format(TraceFile(samples[name])) == name

    def test_says_what_it_reads(self, name, samples):
        assert len(reader.summary(name)) > 20
        assert name in samples, "a new format needs a sample tests/data/<name>.<ending>"

    def test_makes_a_workload_that_can_be_iterated_again(self, name, samples):
        workload = build_workload(WorkloadForm(trace=str(samples[name])), Streams(1))
        first = list(workload)
        assert [request.id for request in first] == [0, 1, 2, 3, 4]
        assert list(workload) == first
        assert workload.block_tokens == 512
        assert name in workload.describe()


@pytest.mark.parametrize("name", PACKABLE)
def test_packed_is_read_alike(name, samples, tmp_path):
    packed = tmp_path / "packed-without-its-ending"
    packed.write_bytes(gzip.compress(samples[name].read_bytes()))
    assert list(reader[name](TraceFile(packed))) == list(reader[name](TraceFile(samples[name])))
    assert guess_format(TraceFile(packed)) == name
