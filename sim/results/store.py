"""The run folder: written beside its place under a temporary name, then moved there whole.

`runs/<scenario name>-<digest>/`, or exactly the folder that the user names. A folder that is there with
the same digest holds the same run and is replaced; what else the user put in it is kept. A run that
was broken off is saved too, with `-partial` in its name.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import tempfile
import traceback
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sim.base.errors import ConfigError
from sim.config.dump import dump
from sim.config.scenario import Scenario
from sim.results.provenance import Invocation, provenance_of, surroundings
from sim.results.run import PROVENANCE_FILE, SUMMARY_FILE, Run
from sim.tables.sinks import TABLES

SCENARIO_FILE = "scenario.yaml"
PICTURE_FILE = "cdf.png"
RUN_FILES: tuple[str, ...] = (
    SCENARIO_FILE,
    PROVENANCE_FILE,
    SUMMARY_FILE,
    *(f"{name}.parquet" for name in TABLES),
    PICTURE_FILE,
)
RUNS = Path("runs")
PARTIAL = "-partial"
NAME_CHARACTERS = 80
_FILE_KEYS = (
    ("topology",),
    ("model", "name"),
    ("timing", "table"),
    ("workload", "trace"),
    ("workload", "servegen"),
    ("workload", "sessions", "trace"),
    ("workload", "input", "file"),
    ("workload", "output", "file"),
)

Draw = Callable[[Run, Path], object]
"""Draws the picture of a run into a file."""


@contextmanager
def staging(out: Path | None = None) -> Iterator[Path]:
    """A temporary folder beside the place of a run; gone afterwards, unless it was moved there.

    Refuses an `out` that is not an empty folder or a new name, before anything is simulated.
    """
    if out is not None:
        check_out(out)
    parent = RUNS if out is None else out.absolute().parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=parent))
    except OSError as error:
        problem = f"cannot write in {parent}: {error.strerror}"
        hint = "name a folder that you may write in"
        raise ConfigError("--out", None, None, problem=problem, hint=hint) from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def check_out(out: Path) -> None:
    """Refuse a folder that already holds something."""
    problem = None
    if out.exists() and not out.is_dir():
        problem = f"{out} is a file"
    elif out.is_dir() and any(out.iterdir()):
        problem = f"{out} is not empty"
    if problem:
        hint = "name a new or empty folder, or leave --out away to save under runs/"
        raise ConfigError("--out", None, None, problem=problem, hint=hint)


def save(run: Run, folder: Path, out: Path | None, invocation: Invocation, draw: Draw) -> Run:
    """Complete the folder of a run and move it into place: to `out`, or under runs/ by its name."""
    if run.scenario is None:
        raise ValueError("a run that was read from a folder is saved already")
    target = out if out is not None else RUNS / folder_name(run)
    run.tables.write(folder)
    overrides = run.scenario.document.overrides
    provenance = provenance_of(run.figures, overrides, invocation, input_files(run.scenario))
    (folder / SCENARIO_FILE).write_text(scenario_text(run.scenario, target), encoding="utf-8")
    (folder / PROVENANCE_FILE).write_text(json_text(provenance), encoding="utf-8")
    (folder / SUMMARY_FILE).write_text(json_text(run.figures), encoding="utf-8")
    draw(run, folder / PICTURE_FILE)
    folder.chmod(0o777 & ~_umask())
    _move_into_place(folder, target)
    return run.saved(target, provenance)


def folder_name(run: Run) -> str:
    """The name of a run's folder: its scenario, its digest, and whether it is only a part."""
    return f"{slug(run.figures['name'])}-{run.digest}" + PARTIAL * bool(run.figures["interrupted"])


def slug(name: str) -> str:
    """A scenario's name as part of a path: letters, digits, dots, dashes and underscores stay as they are."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9._-]+", "-", plain).strip("-.")[:NAME_CHARACTERS].rstrip("-.") or "run"


def input_files(scenario: Scenario) -> list[Path]:
    """The files that a scenario names and that exist; a trace may also be a known name."""
    tree = scenario.model_dump(mode="json", exclude_none=True)
    values = [_value_at(tree, keys) for keys in _FILE_KEYS]
    values += [_value_at(pool, ("timing", "table")) for pool in tree["pools"]]
    values += [_own_router(tree["router"][key]) for key in ("policy", "decode_policy")]
    return [Path(value) for value in values if value is not None and Path(value).is_file()]


def scenario_text(scenario: Scenario, target: Path) -> str:
    """The scenario in full as YAML, its files named as seen from its run folder."""
    head = f"# The scenario of this run, in full. To repeat the run: sim run {target.name}\n"
    return head + dump(scenario, target)


def json_text(tree: Mapping[str, Any]) -> str:
    """JSON for machines that people can read."""
    return json.dumps(tree, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _value_at(tree: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    value: Any = tree
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _own_router(policy: str) -> str | None:
    """The file that a router of the user's own comes from."""
    module, colon, _ = policy.rpartition(":")
    if not colon or module.endswith(".py"):
        return module or None
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    return spec.origin if spec is not None else None


def _move_into_place(folder: Path, target: Path) -> None:
    if target.is_dir():
        for kept in target.iterdir():
            if kept.name not in RUN_FILES:
                kept.rename(folder / kept.name)
        old = folder.with_name(folder.name + "-old")
        target.rename(old)
        folder.rename(target)
        shutil.rmtree(old)
    else:
        folder.rename(target)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def save_failure(scenario: Scenario, error: BaseException) -> Path:
    """Keep what is needed to see a failure again: the scenario, the versions, and the traceback."""
    target = RUNS / f"{slug(scenario.name)}-failed"
    target.mkdir(parents=True, exist_ok=True)
    (target / SCENARIO_FILE).write_text(scenario_text(scenario, target), encoding="utf-8")
    (target / PROVENANCE_FILE).write_text(json_text(surroundings(input_files(scenario))), encoding="utf-8")
    (target / "error.txt").write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    return target
