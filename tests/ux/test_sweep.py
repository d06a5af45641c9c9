"""The screens of `sim sweep`, and what it leaves behind."""

import json
import re

import pandas as pd
import pytest
from models.studies import SCENARIO, write

from sim.cli import main


@pytest.fixture(name="path")
def path_(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return str(write(tmp_path, SCENARIO.replace("limit: 300", "limit: 40")))


def answered(capsys, code, *words):
    assert main(["sweep", *words, "--jobs", "1"]) == code
    return capsys.readouterr()


def test_a_line_for_each_point_and_a_table_of_all(path, capsys, tmp_path):
    words = (path, "--over", "workload.arrivals.rate=40..60:20 req/s", "--over", "router.policy=round_robin")
    out, err = answered(capsys, 0, *words, "--seeds", "2")
    lines = out.splitlines()
    assert re.match(r"  workload.arrivals.rate +router.policy +SLO +goodput +TTFT p90 +TPOT p90", lines[0])
    assert [line.split()[0] for line in lines[2:4]] == ["40", "60"]
    assert all(re.search(r"✓ .* ± .* ms ± ", line) for line in lines[2:4])
    assert lines[-1].startswith("saved runs/small-sweep/sweep.parquet and sweep.csv;")
    assert err.splitlines()[-1] == "sweep: 4 of 4 runs"
    table = pd.read_parquet(tmp_path / "runs" / "small-sweep" / "sweep.parquet")
    assert table["seed"].tolist() == [1, 2, 1, 2]
    again, err = answered(capsys, 0, *words, "--seeds", "2")
    assert again == out
    assert [line for line in err.splitlines() if line.startswith("sweep:")] == ["sweep: 4 of 4 runs"]


def test_a_failed_point_is_told_and_ends_with_one(path, capsys):
    out, _ = answered(capsys, 1, path, "--over", "pools.prefill.tp=8,5", "--out", "here")
    assert "✗ pools.prefill.tp=5: " in out
    found = json.loads(
        answered(capsys, 1, path, "--over", "pools.prefill.tp=8,5", "--out", "here", "--json").out
    )
    assert [row["status"] for row in found["rows"]] == ["ok", "failed"]
    assert found["axes"] == ["pools.prefill.tp"]


def test_the_highest_load(path, capsys):
    sets = ("--set", "slo=[ttft p90 < 200 ms]", "--set", "workload.limit=200")
    words = (path, "--find-max", "workload.arrivals.rate", *sets, "--seeds", "2")
    out, _ = answered(capsys, 0, *words)
    lines = out.splitlines()
    assert lines[0] == "Highest workload.arrivals.rate that meets ttft p90 < 200 ms"
    assert re.fullmatch(r"  [\d.]+ ± [\d.]+ req/s   95 % interval over 2 seeds", lines[1])
    assert re.fullmatch(r"    seed 1: [\d.]+ req/s holds, [\d.]+ breaks ttft p90 < 200 ms", lines[2])
    assert re.fullmatch(r"  by bisection, in \d+ runs", lines[4])
    found = json.loads(answered(capsys, 0, *words, "--json").out)
    (answer,) = found["answers"]
    assert [f"{answer['highest'][0]:g}"] == re.findall(r"seed 1: ([\d.]+)", out)
    assert answer["mean"] == pytest.approx(sum(answer["highest"]) / 2)


def test_a_load_that_nothing_meets_ends_with_one(path, capsys):
    words = (path, "--find-max", "workload.arrivals.rate", "--set", "slo=[ttft p90 < 1 us]")
    out, _ = answered(capsys, 1, *words)
    assert "none: at some seed no value was seen to meet it" in out


MISTAKES = {
    "nothing to vary": ((), "sweep: there is nothing to vary\n  hint: add --over"),
    "no number": (
        ("--find-max", "router.policy"),
        "--find-max router.policy: there is no number to begin with, but prefix_aware",
    ),
    "a key that is none": (
        ("--over", "router.polcy=a,b"),
        "unknown key 'polcy'\n  hint: did you mean 'policy'?",
    ),
    "a range to nowhere": (("--over", "run.drain=9..1:1 s"), "has a range that leads nowhere"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(path, name, capsys):
    words, said = MISTAKES[name]
    out, err = answered(capsys, 2, path, *words)
    assert (out, said in err) == ("", True), err
