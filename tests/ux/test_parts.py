"""`sim list gpus`, `sim show` and `sim diff` on the shipped catalogue: complete, narrow, true to it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sim.catalog import load_catalog
from sim.cli import main
from sim.cli.parts import SHELF_OF

CATALOG = load_catalog()
PARTS = [
    (kind, name) for kind, shelf in SHELF_OF.items() if kind != "model" for name in getattr(CATALOG, shelf)
]
HEAVY = ("numpy", "pandas", "networkx", "simpy", "matplotlib")


def told(capsys, *words):
    assert main(list(words)) == 0
    return capsys.readouterr().out


def refused(capsys, *words):
    assert main(list(words)) == 2
    return capsys.readouterr().err.strip()


def test_the_table_has_every_gpu_once(capsys):
    lines = told(capsys, "list", "gpus").split("\n")
    assert [line.split()[0] for line in lines[2 : 2 + len(CATALOG.gpus)]] == list(CATALOG.gpus)
    assert max(map(len, lines)) <= 86
    # What was not read is marked, what was is not.
    (t4,) = (line for line in lines if line.startswith("t4 "))
    (m5,) = (line for line in lines if line.startswith("apple-m5 "))
    assert "*" not in t4
    assert "28*" in m5


@pytest.mark.parametrize(("kind", "name"), PARTS)
def test_a_part_is_shown_with_all_its_values(capsys, kind, name):
    screen = told(capsys, "show", kind, name)
    entry = getattr(CATALOG, SHELF_OF[kind])[name]
    assert screen.startswith(f"{name}: {entry.title}")
    for key, leaf in entry.provenance.items():
        assert key.startswith("all_reduce.") or leaf.text[:10].strip() in screen
        assert leaf.source in screen
    assert max(len(line) for line in screen.split("\n") if "https:" not in line) <= 110
    figures = json.loads(told(capsys, "show", kind, name, "--json"))
    assert {value["key"] for value in figures["values"]} == set(entry.provenance)
    assert {source["name"] for source in figures["sources"]} == {
        leaf.source for leaf in entry.provenance.values()
    }


def test_list_with_a_name_shows_it_too(capsys):
    assert told(capsys, "list", "gpus", "b200") == told(capsys, "show", "gpu", "b200")
    assert told(capsys, "list", "routers", "round_robin") == told(capsys, "show", "router", "round_robin")


@pytest.mark.parametrize("name", [gpu.name for gpu in CATALOG.gpus.values() if gpu.predecessor])
def test_a_gpu_against_its_predecessor(capsys, name):
    gpu = CATALOG.gpus[name]
    old = CATALOG.gpus[gpu.predecessor]
    assert told(capsys, "diff", "gpu", name) == told(capsys, "diff", "gpu", old.name, name)
    figures = json.loads(told(capsys, "diff", "gpu", name, "--json"))
    facts = {fact["what"]: fact for fact in figures["facts"]}
    assert facts["bandwidth"]["ratio"] == gpu.memory_bytes_per_s / old.memory_bytes_per_s
    for fact in facts.values():
        if fact["ratio"] is not None:
            assert fact["ratio"] == pytest.approx(fact["after"] / fact["before"])
    # Decode follows bandwidth as far as it is bound by it: fixed times of kernels do not shrink.
    ratio = facts["reading weights"]["ratio"]
    for block in figures["serving"]:
        before, after = block["before"], block["after"]
        if None not in (before["step_ps"], after["step_ps"]):
            faster = before["step_ps"] / after["step_ps"]
            assert min(1, ratio) * 0.95 < faster < max(ratio, facts["reading KV"]["ratio"]) * 1.05


def test_links_and_nodes_are_compared(capsys):
    assert "×2.00" in told(capsys, "diff", "link", "nvlink-4", "nvlink-5")
    assert "dgx-h100 → hgx-h200" in told(capsys, "diff", "node", "hgx-h200")


def test_another_model_may_be_asked_for(capsys):
    screen = told(capsys, "diff", "gpu", "b200", "b300", "--model", "llama-3.1-70b")
    assert "llama-3.1-70b in FP8 on one GPU" in screen


def test_mistakes_have_remedies(capsys):
    assert refused(capsys, "show", "gpu", "b2000") == "unknown GPU 'b2000'\n  hint: did you mean 'b200'?"
    assert refused(capsys, "show", "gqu", "b200").startswith(
        "unknown kind 'gqu'\n  hint: did you mean 'gpu'?"
    )
    assert refused(capsys, "diff", "engine", "reference", "reference-h200") == (
        "engines are not compared\n"
        "  nearest: sim show engine reference-h200; gpus, nodes and links can be compared"
    )
    assert refused(capsys, "diff", "gpu", "t4") == (
        "t4 has no predecessor in the catalogue\n  nearest: sim diff gpu OTHER t4"
    )
    assert refused(capsys, "diff", "gpu", "t4", "l4", "l40s").startswith("3 parts at once")


def test_nothing_heavy_is_imported_for_lists_and_parts():
    code = (
        "import sys; from sim.cli.app import main; main(['list', 'gpus']); main(['show', 'gpu', 'b200']);"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout.strip().split("\n")[-1] == "[]"
