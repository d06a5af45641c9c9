"""Sweeps: rows, hashes, what is left when one is killed, and what failing points say."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from models.studies import write

from sim import api
from sim.base.errors import ConfigErrors
from sim.results.row import row_of
from sim.whatif import sweep as module
from sim.whatif.sweep import sweep
from sim.whatif.trials import hash_of

RATES = ["40 req/s", "60 req/s"]


@pytest.fixture(name="base")
def base_(tmp_path):
    return api.load(write(tmp_path)).replace({"workload.limit": 60})


def files(folder):
    return {path.name: path.stat().st_mtime_ns for path in (folder / "trials").glob("*")}


def test_each_row_is_that_of_the_run_alone(base):
    found = sweep(base, {"workload.arrivals.rate": RATES, "router.policy": ["round_robin"]}, seeds=2, jobs=1)
    assert list(found.table["workload.arrivals.rate"]) == ["40 req/s", "40 req/s", "60 req/s", "60 req/s"]
    assert list(found.table["seed"]) == [1, 2, 1, 2]
    alone = base.replace(
        {"workload.arrivals.rate": "60 req/s", "router.policy": "round_robin", "run.seed": 2}
    )
    expected = row_of(api.run(alone).figures)
    last = found.table.iloc[-1]
    assert {key: last[key] for key in expected if key != "cpu_s"} == {
        key: value for key, value in expected.items() if key != "cpu_s"
    }


@pytest.mark.slow
def test_several_processes_give_the_same_table(base):
    one, two = (sweep(base, {"workload.arrivals.rate": RATES}, jobs=jobs).table for jobs in (1, 2))
    pd.testing.assert_frame_equal(one.drop(columns="cpu_s"), two.drop(columns="cpu_s"))


def test_what_is_done_is_not_played_again(base, tmp_path, monkeypatch):
    out = tmp_path / "out"
    first = sweep(base, {"workload.arrivals.rate": RATES}, jobs=1, out=out)
    before = files(out)
    assert len(before) == 2
    monkeypatch.setattr(module, "_done", lambda *_: pytest.fail("played again"))
    again = sweep(base, {"workload.arrivals.rate": RATES}, jobs=1, out=out)
    pd.testing.assert_frame_equal(again.table, first.table)
    assert files(out) == before
    pd.testing.assert_frame_equal(pd.read_parquet(out / "sweep.parquet"), first.table)
    assert len(pd.read_csv(out / "sweep.csv")) == 2


def test_rows_are_known_by_all_that_they_depend_on(base, tmp_path):
    assert hash_of(base) == hash_of(api.load(base.document.path).replace({"workload.limit": 60}))
    changed = [base.replace({"run.seed": 2}), base.replace({"router.load_weight": 0.5})]
    topology = tmp_path / "topology.yaml"
    before = hash_of(base)
    topology.write_text(topology.read_text().replace("count: 12", "count: 11"))
    assert len({before, hash_of(base), *map(hash_of, changed)}) == 4


def test_a_failed_point_is_a_row_with_its_reason(base, tmp_path):
    found = sweep(base, {"pools.prefill.tp": [8, -1, 5]}, jobs=1, out=tmp_path / "out")
    assert list(found.table["status"]) == ["ok", "failed", "failed"]
    assert "pools.prefill.tp" in found.table["reason"][1]
    assert "5" in found.table["reason"][2]
    assert len(found.failed) == 2
    assert len(files(tmp_path / "out")) == 1


def test_a_question_without_any_answer_is_a_mistake(base):
    with pytest.raises(ConfigErrors, match="did you mean 'prefill'"):
        sweep(base, {"pools.prefil.tp": [4, 8]}, jobs=1)


def test_a_bug_in_one_point_does_not_end_the_others(base, monkeypatch):
    play = api.run

    def breaking(scenario):
        if scenario.run.seed == 2:
            raise ZeroDivisionError("oh")
        return play(scenario)

    monkeypatch.setattr(api, "run", breaking)
    table = sweep(base, {"workload.arrivals.rate": RATES}, seeds=2, jobs=1).table
    assert list(table["status"]) == ["ok", "failed", "ok", "failed"]
    assert table["reason"][1] == "internal error: ZeroDivisionError: oh"


def test_one_that_is_broken_off_leaves_a_table_of_what_is_done(base, tmp_path, monkeypatch):
    play = api.run

    def stopped(scenario):
        if scenario.run.seed == 3:
            raise KeyboardInterrupt
        return play(scenario)

    monkeypatch.setattr(api, "run", stopped)
    with pytest.raises(KeyboardInterrupt):
        sweep(base, {}, seeds=4, jobs=1, out=tmp_path / "out")
    assert pd.read_parquet(tmp_path / "out" / "sweep.parquet")["seed"].tolist() == [1, 2]
    monkeypatch.undo()
    assert sweep(base, {}, seeds=4, jobs=1, out=tmp_path / "out").table["seed"].tolist() == [1, 2, 3, 4]


SCRIPT = """
import sys
from sim import api
from sim.whatif.sweep import sweep
base = api.load(sys.argv[1]).replace({"workload.limit": 60})
sweep(base, {}, seeds=8, jobs=1, out=sys.argv[2])
"""


@pytest.mark.slow
def test_a_killed_sweep_goes_on_where_it_was(base, tmp_path):
    out, words = tmp_path / "out", [sys.executable, "-c", SCRIPT, str(base.document.path)]
    environment = os.environ | {"PYTHONPATH": str(Path(api.__file__).parents[1])}
    process = subprocess.Popen([*words, str(out)], env=environment)
    while process.poll() is None and len(list(out.glob("trials/*.json"))) < 2:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    left = {name: made for name, made in files(out).items() if name.endswith(".json")}
    assert 2 <= len(left) < 8
    assert all(json.loads((out / "trials" / name).read_text())["status"] == "ok" for name in left)
    subprocess.run([*words, str(out)], env=environment, check=True)
    assert left.items() <= files(out).items()
    whole = sweep(base, {}, seeds=8, jobs=1).table
    resumed = pd.read_parquet(out / "sweep.parquet")
    pd.testing.assert_frame_equal(resumed.drop(columns="cpu_s"), whole.drop(columns="cpu_s"))
