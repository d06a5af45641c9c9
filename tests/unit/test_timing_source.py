"""A scenario that names a measured table: mistakes at their lines, doubts before the run and after it."""

from pathlib import Path

import pytest

from sim import api, checks
from sim.base.errors import Advice, ConfigErrors
from sim.resolve import resolve
from sim.timing.measured import Measured
from sim.timing.roofline import Roofline

SCENARIO = """\
sim: 1
name: measured
topology: cluster.yaml
model: {name: llama-3.1-8b, weights: bf16, kv: bf16}
timing: {kind: measured, table: h200-sxm}
pools:
- {name: prefill, role: prefill, replicas: 4, tp: 1}
- {name: decode, role: decode, replicas: 4, tp: 1}
workload:
  arrivals: {kind: poisson, rate: 20 req/s}
  input: {kind: fixed, tokens: 1000}
  output: {kind: fixed, tokens: 50}
  limit: 40
slo: [ttft p90 < 2 s]
"""
CLUSTER = """\
sim: 1
name: one
source: [made up]
nodes:
- {name: n, type: hgx-h200, count: 1}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def loaded(text=SCENARIO, *sets):
    Path("scenario.yaml").write_text(text)
    return api.load("scenario.yaml", sets=sets)


def mistake(text=SCENARIO, *sets):
    with pytest.raises(ConfigErrors) as wrong:
        resolve(loaded(text, *sets))
    return str(wrong.value)


def test_every_pool_takes_its_times_from_the_table():
    plan = resolve(loaded()).plan
    assert isinstance(plan.prefill.timing, Measured)
    assert isinstance(plan.decode.timing, Measured)


def test_a_pool_may_have_times_of_its_own():
    text = SCENARIO.replace(
        "role: decode, replicas: 4, tp: 1", "role: decode, replicas: 2, tp: 2, timing: {kind: roofline}"
    )
    plan = resolve(loaded(text)).plan
    assert isinstance(plan.prefill.timing, Measured)
    assert isinstance(plan.decode.timing, Roofline)


def test_a_wrong_name_is_told_once_at_its_line():
    assert mistake(SCENARIO.replace("h200-sxm", "h200-smx")) == (
        "scenario.yaml:5:26: timing.table: unknown table of measurements 'h200-smx'\n"
        "   5 | timing: {kind: measured, table: h200-smx}\n"
        "                                ^\n"
        "  hint: did you mean 'h200-sxm'?"
    )


def test_what_the_table_has_not_is_told_with_what_it_has():
    found = mistake(SCENARIO, "pools.decode.tp=2", "pools.decode.replicas=2")
    assert "timing.table: h200-sxm has no steps of llama-3.1-8b with weights bf16, kv bf16, tp 2" in found
    assert "hint: nearest: llama-3.1-8b with weights bf16, kv bf16, tp 1" in found


def test_a_pool_s_own_table_is_told_at_the_pool():
    text = SCENARIO.replace(
        "role: decode, replicas: 4, tp: 1",
        "role: decode, replicas: 4, tp: 1, timing: {kind: measured, table: h200-paged-torch}",
    )
    found = mistake(text)
    assert found.startswith("scenario.yaml:8:")
    assert "pools.1.timing.table: h200-paged-torch holds the host times of engine reference-h200" in found


def test_a_file_that_is_not_there():
    assert "tables/mine.yaml: no such file" in mistake(SCENARIO.replace("h200-sxm", "tables/mine.yaml"))


def test_steps_without_a_table_and_tables_without_steps():
    with pytest.raises(ConfigErrors, match="kind: measured needs a table"):
        loaded(SCENARIO.replace(", table: h200-sxm", ""))
    with pytest.raises(ConfigErrors, match="kind: roofline takes no table"):
        loaded(SCENARIO.replace("measured, ", "roofline, "))


def test_batches_beyond_the_table_are_doubted_before_the_run():
    (doubt,) = checks.check(loaded(SCENARIO, "pools.decode.max_sequences=700"))
    assert isinstance(doubt, Advice)
    assert "decode may run 700 sequences at once" in doubt.text
    assert "h200-sxm has steps of 512 at most: the roofline carries on" in doubt.text
    assert checks.check(loaded()) == []


def test_a_run_inside_the_table_has_no_doubt_about_it():
    run = api.run(loaded())
    assert not [doubt for doubt in run.warnings if "table" in doubt.text and "measured" in doubt.text]


def test_a_run_outside_the_table_says_how_often():
    run = api.run(loaded(SCENARIO, "workload.input.tokens=66000", "workload.limit=5"))
    texts = [doubt.text for doubt in run.warnings]
    assert any(
        text.startswith("5 of 5 prefills lie outside the measured table h200-sxm (to 32,768 new")
        for text in texts
    )
    assert any(
        text.startswith(
            "5 of 5 sequences grew longer than any of the measured table h200-sxm (to 66,050 tokens"
        )
        for text in texts
    )


def test_measured_times_are_what_is_simulated():
    scenario = loaded(SCENARIO, "workload.limit=1")
    run, timing = api.run(scenario), resolve(scenario).plan.prefill.timing
    (prefill_s,) = run.requests.phase_prefill_s
    assert prefill_s * 1e12 == pytest.approx(timing.prefill_ps([(1000, 0)]), abs=1)


def test_the_table_is_kept_by_name_or_path(folder):
    scenario = loaded()
    assert scenario.timing.table == "h200-sxm"
    mine = loaded(SCENARIO.replace("h200-sxm", "tables/mine.yaml"))
    assert mine.timing.table == str(folder / "tables" / "mine.yaml")
