"""The screen of `sim compare`: its text for fixed rows, and the verb on a small scenario."""

import json
from pathlib import Path

import pytest
from comparison_parts import BASE, changed, rows
from models.studies import SCENARIO, write

from sim.cli import main
from sim.report.comparison import comparison_lines, markdown
from sim.report.text import plain
from sim.results.comparison import compare_rows
from sim.results.differences import Differences

HERE = Path(__file__).parent
POOL = {
    "hit_fraction": (0.20, 0.21, 0.19),
    "hit_dram_fraction": (0.08, 0.09, 0.07),
    "tokens_not_recomputed": (2_000_000, 2_100_000, 1_900_000),
    "fetch_mean_s": (0.01, 0.011, 0.009),
    "busiest_link_fraction": (0.97, 0.98, 0.96),
}
BETTER = POOL | {
    "hit_fraction": (0.30, 0.32, 0.29),
    "tokens_not_recomputed": (3_000_000, 3_100_000, 2_930_000),
    "busiest_link_fraction": (0.63, 0.64, 0.63),
}


def drawn():
    one, other = BASE | POOL, changed(goodput_per_s=11.0, ttft_p90_s=-0.2, phase_queue_s=-0.3) | BETTER
    table = rows({"leaf-spine": one, "rail": other, "broken": one})
    table.loc[table["column"] == "broken", ["status", "reason"]] = ["failed", "tp 5 does not divide 8 GPUs"]
    differences = Differences(("leaf-spine", "rail"), {"topology": ("leaf-spine.yaml", "rail.yaml")})
    return compare_rows(table, "leaf-spine"), differences


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("screen.txt", lambda *found: "\n".join(map(plain, comparison_lines(*found))) + "\n"),
        ("markdown.md", markdown),
    ],
)
def test_the_text_is_as_kept(name, form):
    assert form(*drawn()) == (HERE / "compare" / name).read_text()


def test_other_requests_are_told():
    comparison, _ = drawn()
    loads = Differences(("a", "b"), {"workload.rate": ("1 req/s", "2 req/s"), "router.policy": ("x", "y")})
    first = plain(comparison_lines(comparison, loads)[0])
    assert first == "Requests are not the same in every column, for they differ in workload.rate."


@pytest.fixture(name="path")
def path_(tmp_path):
    return str(write(tmp_path, SCENARIO.replace("limit: 300", "limit: 40")))


def test_along_an_axis(path, capsys):
    words = [
        "compare",
        path,
        "--over",
        "router.policy=least_loaded,round_robin",
        "--seeds",
        "2",
        "--jobs",
        "1",
    ]
    assert main(words) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Same requests in every column.\n± is a 95 % interval over 2 paired seeds;")
    assert "  router.policy  least_loaded  round_robin\n" in out.replace("    least", "  least")
    assert "In words  round_robin" in out
    assert err.splitlines()[-1] == "comparing: 4 of 4 runs"


def test_json_holds_all_of_it(path, tmp_path, capsys):
    other = tmp_path / "other.yaml"
    other.write_text(Path(path).read_text().replace("replicas: 3", "replicas: 2"))
    assert main(["compare", path, str(other), "--seeds", "2", "--jobs", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["columns"] == ["scenario", "other"]
    assert found["differences"] == {"pools.prefill.replicas": ["3", "2"], "pools.decode.replicas": ["3", "2"]}
    assert [row["seed"] for row in found["rows"]] == [1, 2, 1, 2]
    goodput = next(one for one in found["measures"] if one["measure"]["column"] == "goodput_per_s")
    mean = sum(row["goodput_per_s"] for row in found["rows"][:2]) / 2
    assert goodput["cells"][0]["mean"] == pytest.approx(mean)


MISTAKES = {
    "one column": ([], "compare: there is nothing to compare"),
    "no such column": (
        ["--over", "router.policy=least_loaded,round_robin", "--baseline", "least_load"],
        "--baseline: there is no column 'least_load'\n  hint: did you mean 'least_loaded'?",
    ),
    "a key that is none": (
        ["--over", "router.polcy=a,b"],
        "--over router.polcy=a: unknown key 'polcy'",
    ),
    "a seed": (["--over", "run.seed=1,2"], "--over run.seed: the seed is no axis"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(path, name, capsys):
    words, said = MISTAKES[name]
    assert main(["compare", path, *words, "--jobs", "1"]) == 2
    out, err = capsys.readouterr()
    assert (out, said in err) == ("", True), err
