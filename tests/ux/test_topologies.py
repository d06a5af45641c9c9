"""What `sim topo` shows, and every mistake in a topology, word for word.

A screen is `topology/NAME.txt`; a mistake is two files in `topology/mistakes/`: `case.yaml` and, in
`case.txt`, what the user is told. Each is made in a copy of the folder, so that no repository is around it.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from sim.base.errors import ConfigErrors
from sim.catalog import load_catalog
from sim.cli import main
from sim.config.load import load_topology
from sim.topology.cluster import build

HERE = Path(__file__).parent / "topology"
SCENARIO = """\
sim: 1
name: chat
topology: by-hand.yaml
model: {name: llama-3.1-70b}
pools:
  - {name: prefill, role: prefill, replicas: 3, tp: 8}
  - {name: decode, role: decode, replicas: 2, tp: 4}
workload: {generator: mooncake-conversation, rate: 1 req/s}
"""
WIDE = SCENARIO.replace("replicas: 3, tp: 8", "replicas: 1, tp: 16").replace("tp: 4", "tp: 8")
ODD = SCENARIO.replace("tp: 4", "tp: 12")
SCREENS: dict[str, list[str]] = {
    "show-by-hand": ["show", "by-hand.yaml"],
    "show-racks": ["show", "racks.yaml"],
    "show-b200": ["show", "b200-4000-ib-ndr"],
    "show-placement": ["show", "by-hand.yaml", "--scenario", "chat.yaml"],
    "show-wide": ["show", "by-hand.yaml", "--scenario", "wide.yaml"],
    "show-wide-racks": ["show", "racks.yaml", "--scenario", "wide.yaml"],
    "show-single": ["show", "one-hgx-h200"],
    "stats-by-hand": ["stats", "by-hand.yaml"],
    "stats-racks": ["stats", "racks.yaml"],
    "stats-b200": ["stats", "b200-4000-ib-ndr"],
    "stats-direct": ["stats", "two-dgx-b200-direct"],
    "path-nodes": ["path", "by-hand.yaml", "0", "dgx/3"],
    "path-gpus": ["path", "by-hand.yaml", "gpu", "0", "gpu", "31"],
    "path-domain": ["path", "racks.yaml", "gpu:0", "gpu:23"],
    "path-b200": ["path", "b200-4000-ib-ndr", "0", "499"],
    "path-staged": ["path", "staged.yaml", "gpu", "0", "gpu", "19"],
    "path-hashed": ["path", "hashed.yaml", "0", "9"],
    "diff-same": ["diff", "racks.yaml", "racks.yaml"],
    "diff-kinds": ["diff", "by-hand.yaml", "racks.yaml"],
    "diff-b200": ["diff", "b200-4000-ib-ndr", "b200-4000-ib-2to1"],
}
MISTAKES: dict[str, list[str]] = {
    "unknown topology 'b200-4000-ib-nrd'": ["show", "b200-4000-ib-nrd"],
    "chat.yaml: a scenario, not a topology": ["stats", "chat.yaml"],
    "sim topo path: needs two ends, not 1": ["path", "racks.yaml", "gpu", "3"],
    "sim topo path: needs two ends, not 3": ["path", "racks.yaml", "1", "2", "3"],
    "9: there is no node 9: racks has 6": ["path", "racks.yaml", "9", "0"],
    "pools.0.replicas: 3 replicas of 8 GPUs do not fit on two-dgx-b200: there is room for 2": [
        "show",
        "two-dgx-b200",
        "--scenario",
        "chat.yaml",
    ],
    "pools.1.tp: 12 GPUs are neither an equal part of the 8 of a node nor whole nodes on by-hand": [
        "show",
        "by-hand.yaml",
        "--scenario",
        "odd.yaml",
    ],
    "--run: there is no run in study": ["draw", "racks.yaml", "--run", "study"],
    "--out: picture.jpg is neither a .png nor a .svg file": ["draw", "racks.yaml", "--out", "picture.jpg"],
}


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the folder, with a scenario, as the current one."""
    shutil.copytree(HERE, tmp_path / "study")
    for name, text in (("chat", SCENARIO), ("wide", WIDE), ("odd", ODD)):
        (tmp_path / "study" / f"{name}.yaml").write_text(text)
    monkeypatch.chdir(tmp_path / "study")
    return tmp_path / "study"


@pytest.mark.parametrize("name", SCREENS)
def test_screen(name: str, study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topo", *SCREENS[name]]) == 0
    shown, told = capsys.readouterr()
    assert told == ""
    assert shown == (HERE / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SCREENS)
def test_json_says_the_same(name: str, study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topo", *SCREENS[name], "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    verb = SCREENS[name][0]
    key = {"show": "parts", "stats": "fabric", "path": "links", "diff": "keys"}[verb]
    assert key in figures
    assert ("placement" in figures) == ("--scenario" in SCREENS[name])


@pytest.mark.parametrize("case", sorted(path.stem for path in (HERE / "mistakes").glob("*.yaml")))
def test_mistake(case: str, study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(study / "mistakes")
    with pytest.raises(ConfigErrors) as caught:
        build(load_topology(f"{case}.yaml"), load_catalog())
    assert f"{caught.value}\n" == (HERE / "mistakes" / f"{case}.txt").read_text(encoding="utf-8")


def test_every_text_has_its_case() -> None:
    stems = {path.stem for path in (HERE / "mistakes").glob("*.txt")}
    assert stems == {path.stem for path in (HERE / "mistakes").glob("*.yaml")}
    assert {path.stem for path in HERE.glob("*.txt")} == set(SCREENS)


@pytest.mark.parametrize("words", MISTAKES)
def test_a_mistake_of_the_user_ends_with_2(
    words: str, study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["topo", *MISTAKES[words]]) == 2
    shown, told = capsys.readouterr()
    assert shown == ""
    assert words in told
    assert "hint: " in told
    assert "Traceback" not in told


def test_a_drawing_goes_to_a_file(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topo", "draw", "racks.yaml"]) == 0
    assert capsys.readouterr().out == "racks.png\n"
    assert (study / "racks.png").read_bytes().startswith(b"\x89PNG")
    assert main(["topo", "draw", "racks.yaml", "--out", "racks.svg"]) == 0
    assert "<svg" in (study / "racks.svg").read_text(encoding="utf-8")


def test_a_drawing_with_a_run_is_of_the_topology_that_it_ran_on(
    study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ["--set", "workload.limit=20", "--set", "pools.prefill.replicas=2"]
    assert main(["run", "chat.yaml", "--out", "saved", *few]) == 0
    capsys.readouterr()
    assert main(["topo", "draw", "by-hand.yaml", "--run", "saved"]) == 0
    assert capsys.readouterr().out == "by-hand.png\n"
    assert main(["topo", "draw", "racks.yaml", "--run", "saved"]) == 2
    told = capsys.readouterr().err
    assert "--run: the run in saved was not on racks.yaml: its files are by-hand.yaml" in told
    assert not (study / "racks.png").exists()
