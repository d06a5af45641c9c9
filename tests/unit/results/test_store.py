"""The run folder: whole or not at all, where the user wants it."""

from __future__ import annotations

import json

import pandas as pd
import pytest
import results_parts as parts

from sim.base.errors import ConfigError
from sim.config.load import load_scenario
from sim.results.provenance import Invocation, differences
from sim.results.run import Run, open_run
from sim.results.store import RUN_FILES, save, slug, staging
from sim.tables.sinks import ParquetSink


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def draw(run, path):
    path.write_bytes(b"picture of " + run.digest.encode())


def saved(out=None, n=40, scenario=None, **outcome):
    with staging(out) as folder:
        sink = ParquetSink(folder)
        parts.fill(sink, n)
        run = Run.from_sink(sink, parts.outcome(**outcome), scenario or parts.scenario())
        return save(
            run, folder, out, Invocation(("sim", "run", "x.yaml"), "2026-01-01T00:00:00+00:00", 1.5), draw
        )


def test_the_folder_holds_exactly_the_promised_files(tmp_path):
    run = saved()
    assert run.folder.as_posix() == f"runs/chat-12-nodes-{run.digest}"
    assert sorted(path.name for path in run.folder.iterdir()) == sorted(RUN_FILES)
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [run.folder.name]


def test_a_folder_is_a_run_again():
    run = saved()
    again = open_run(run.folder)
    kept = Run.from_sink(parts.sink(40), parts.outcome(), parts.scenario())
    assert again.figures == kept.figures
    for name in ("requests", "spans", "samples"):
        pd.testing.assert_frame_equal(getattr(again, name), getattr(kept, name))
    assert repr(again) == repr(kept)


def test_the_saved_scenario_loads_to_the_same():
    scenario = parts.scenario()
    run = saved(scenario=scenario)
    assert load_scenario(run.folder / "scenario.yaml") == scenario


def test_a_run_in_memory_is_saved_as_well():
    with staging() as folder:
        run = save(
            Run.from_sink(parts.sink(9), parts.outcome(), parts.scenario()), folder, None, Invocation(), draw
        )
    assert sorted(path.name for path in run.folder.iterdir()) == sorted(RUN_FILES)
    assert len(run.requests) == 9


def test_provenance_says_how_it_came_about():
    provenance = json.loads((saved().folder / "provenance.json").read_text())
    assert provenance["command"] == ["sim", "run", "x.yaml"]
    assert provenance["seed"] == 1
    assert provenance["packages"]["numpy"]
    assert provenance["interrupted"] is False
    assert set(provenance) >= {
        "digest",
        "overrides",
        "started_at",
        "wall_s",
        "cpu_s",
        "events",
        "git",
        "python",
        "files",
        "catalog",
    }


def test_out_is_taken_exactly(tmp_path):
    out = tmp_path / "here" / "mine"
    out.mkdir(parents=True)
    assert saved(out).folder == out
    assert sorted(path.name for path in out.iterdir()) == sorted(RUN_FILES)
    assert not (tmp_path / "runs").exists()


def test_out_that_holds_something_is_refused_before_anything_runs(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    with pytest.raises(ConfigError) as refusal, staging(tmp_path / "full"):
        pytest.fail("the simulation would have started")
    assert str(refusal.value) == (
        f"--out: {tmp_path}/full is not empty\n"
        "  hint: name a new or empty folder, or leave --out away to save under runs/"
    )
    assert (tmp_path / "full" / "notes.txt").read_text() == "mine"


def test_out_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"--out") as refusal, staging(tmp_path / "file"):
        pytest.fail("the simulation would have started")
    assert refusal.value.problem.endswith("file is a file")


def test_the_same_run_replaces_its_folder_and_keeps_what_is_not_ours():
    first = saved()
    (first.folder / "notes.txt").write_text("mine")
    (first.folder / "cdf.png").write_text("old")
    again = saved()
    assert again.folder == first.folder
    assert (again.folder / "notes.txt").read_text() == "mine"
    assert (again.folder / "cdf.png").read_bytes().startswith(b"picture")


def broken_run():
    with staging() as folder:
        ParquetSink(folder)
        raise RuntimeError


def test_nothing_is_left_of_a_run_that_failed(tmp_path):
    with pytest.raises(RuntimeError):
        broken_run()
    assert list((tmp_path / "runs").iterdir()) == []


def test_an_interrupted_run_is_marked():
    run = saved(interrupted=True)
    assert run.folder.name == f"chat-12-nodes-{run.digest}-partial"
    assert json.loads((run.folder / "provenance.json").read_text())["interrupted"] is True


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("chat-12_nodes", "chat-12_nodes"),
        ("Chat on 16 H200 nodes", "Chat-on-16-H200-nodes"),
        ("../../etc/passwd", "etc-passwd"),
        ("Für Übung · 2", "Fur-Ubung-2"),
        ("...", "run"),
        ("", "run"),
        ("x" * 200, "x" * 80),
    ],
)
def test_names_become_safe_parts_of_a_path(name, path):
    assert slug(name) == path


def test_differences_name_what_has_changed():
    before = {
        "python": "3.11.1",
        "architecture": "linux",
        "git": {"commit": "a", "dirty": False},
        "packages": {"numpy": "2.0"},
        "files": {"t.yaml": "1"},
        "catalog": {},
    }
    after = before | {
        "packages": {"numpy": "2.1"},
        "files": {"t.yaml": "2"},
        "git": {"commit": "b", "dirty": False},
    }
    assert differences(before, before) == []
    assert differences(before, after) == [
        "another commit of the simulator",
        "numpy has changed",
        "t.yaml has changed",
    ]
