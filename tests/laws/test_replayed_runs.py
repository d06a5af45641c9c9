"""The requests of a run, exported and replayed, have the latencies that they had."""

import pytest
from models.studies import SCENARIO, played, with_shared_prefixes

from sim import api
from sim.tables.sinks import ParquetSink

LATENCIES = ["ttft_s", "tpot_s", "e2e_s", "first_gap_s", "finished_at_s", "e2e_ps"]


def exported(folder, scenario, *sets):
    """Play into Parquet files; the run and its folder."""
    out = folder / "run"
    out.mkdir()
    return played(folder, *sets, scenario=scenario, sink=ParquetSink(out)), out


def replay_of(scenario, lines):
    """The scenario with a saved run as its workload."""
    start, end = scenario.index("workload:"), scenario.index("run:")
    return scenario[:start] + "workload:\n" + lines + scenario[end:]


@pytest.mark.parametrize(
    "scenario", [SCENARIO, with_shared_prefixes()], ids=["lengths alone", "shared prefixes"]
)
@pytest.mark.parametrize("what", ["run/requests.parquet", "./run"], ids=["file", "folder"])
def test_a_replayed_run_has_the_same_latencies(tmp_path, scenario, what):
    first, _ = exported(tmp_path, scenario)
    before = first.requests
    again = played(tmp_path, scenario=replay_of(scenario, f"  trace: {what}\n  format: run\n"))
    assert again.digest == first.digest
    assert again.requests[LATENCIES].equals(before[LATENCIES])
    assert (before["cached_tokens"].sum() > 0) == ("generator" in scenario)


def test_a_replay_on_another_cluster_sees_the_same_requests(tmp_path):
    first, _ = exported(tmp_path, SCENARIO)
    text = replay_of(SCENARIO, "  trace: ./run\n  format: run\n")
    other = played(tmp_path, "pools.decode.replicas=1", scenario=text)
    asked = ["arrived_at_ps", "input_tokens", "output_tokens"]
    assert other.requests[asked].equals(first.requests[asked])
    assert other.digest != first.digest


def test_a_run_in_files_equals_a_run_in_memory(tmp_path):
    in_files, _ = exported(tmp_path, SCENARIO)
    in_memory = played(tmp_path)
    assert in_files.digest == in_memory.digest
    assert in_files.requests.drop(columns="block_ids").equals(in_memory.requests.drop(columns="block_ids"))
    assert in_files.figures["ttft_s"] == in_memory.figures["ttft_s"]
    assert in_files.figures["itl_s"] == in_memory.figures["itl_s"]


def test_the_window_of_a_longer_run_replays_from_its_start(tmp_path):
    """With a start, arrivals count from it: the requests of the window are those of the whole after it."""
    whole, _ = exported(tmp_path, SCENARIO)
    part = played(tmp_path, "run.start=2 s", "kv_pool.policy=none")
    later = whole.requests[whole.requests["arrived_at_ps"] >= 2 * 10**12]
    assert len(later) > 50
    assert (part.requests["arrived_at_ps"] + 2 * 10**12).tolist() == later["arrived_at_ps"].tolist()
    assert part.requests["input_tokens"].tolist() == later["input_tokens"].tolist()


def test_the_api_takes_a_path_as_text(tmp_path):
    played(tmp_path)
    assert api.run(api.load(str(tmp_path / "scenario.yaml"))).digest == played(tmp_path).digest
