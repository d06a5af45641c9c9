"""Checks of a scenario: doubts at their line, with a remedy, and none where there is nothing to doubt."""

import json
from pathlib import Path

import pytest

from sim import api, checks

ROOT = Path(__file__).parents[2]
HELLO = ROOT / "scenarios" / "hello.yaml"


def doubts(*sets, **changes):
    found = checks.check(
        api.load(HELLO, sets=sets).replace(changes) if changes else api.load(HELLO, sets=sets)
    )
    return [str(each) for each in found]


def test_nothing_is_odd_about_the_first_scenario():
    assert doubts() == []


def test_a_load_beyond_capacity_is_said_before_it_is_simulated():
    found = doubts("workload.arrivals.rate=5000 req/s")
    assert len(found) == 2  # for prefill and for decode
    for doubt, role in zip(found, ("prefill", "decode"), strict=True):
        assert doubt.startswith("--set workload.arrivals.rate=5000 req/s: 5000 req/s is more than the 2")
        assert f"lower the rate, or add {role} replicas" in doubt


def test_gpus_that_nobody_uses_are_counted():
    (doubt,) = doubts("pools.decode.replicas=1")
    assert "4 of 16 GPUs are not used" in doubt


def test_without_an_slo_there_is_no_verdict():
    (doubt,) = doubts("slo=[]")
    assert "there is no SLO, so there will be no verdict and no goodput" in doubt


@pytest.mark.parametrize(
    ("sets", "problem"),
    [
        (("run.warm_caches=true",), "nothing comes before the window"),
        (("run.warm_caches=true", "run.start=1 s", "kv_pool.policy=none"), "so there is no cache"),
    ],
)
def test_caches_that_cannot_be_warmed(sets, problem):
    assert any(problem in doubt for doubt in doubts(*sets))


def test_coarse_ticks_of_a_trace_are_pointed_at(tmp_path):
    rows = [{"timestamp": 3000 * (i // 3), "input_length": 600, "output_length": 5} for i in range(300)]
    trace = tmp_path / "t.jsonl"
    trace.write_text("\n".join(json.dumps(row) for row in rows))
    text = HELLO.read_text()
    start = text.index("workload:")
    end = text.index("\nrun:", start)
    scenario = tmp_path / "replay.yaml"
    topology = ROOT / "topologies" / "two-dgx-b200.yaml"
    changed = text[:start] + f"workload: {{trace: {trace}}}" + text[end:]
    scenario.write_text(changed.replace("../topologies/two-dgx-b200.yaml", str(topology)))
    found = [str(each) for each in checks.check(api.load(scenario))]
    assert any("workload.trace: arrivals come in ticks of 3 s" in doubt for doubt in found)
    assert any("set workload.tick: 3 s" in doubt for doubt in found)
