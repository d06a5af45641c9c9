"""Files that users name: what they hold, and which one is meant where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sim.base.errors import ConfigError, suggest
from sim.cli.listing import TOPOLOGY_FOLDERS
from sim.config.filekind import is_topology
from sim.results.run import SUMMARY_FILE
from sim.results.store import SCENARIO_FILE

SCENARIO_FOLDERS: tuple[Path, ...] = (Path("scenarios"), Path(__file__).parents[2] / "scenarios")


def scenario_file(path: Path) -> Path:
    """The file of a scenario: the path itself, or what a run folder holds; anything else is refused."""
    must_exist(path, SCENARIO_FOLDERS)
    if path.is_dir():
        return scenario_in(path)
    if is_topology(path):
        hint = "name it in the `topology:` of a scenario, and run that; `sim check` takes both"
        raise ConfigError(str(path), None, None, problem="a topology, not a scenario", hint=hint)
    return path


def scenario_in(folder: Path) -> Path:
    """The scenario of a run folder."""
    if not (folder / SUMMARY_FILE).is_file():
        hint = "name a scenario file, or the folder of a saved run"
        raise ConfigError(str(folder), None, None, problem="a folder, but not of a run", hint=hint)
    return folder / SCENARIO_FILE


def must_exist(path: Path, folders: Sequence[Path]) -> None:
    """Refuse a path that leads nowhere, with the file that is meant: beside it, or in one of some folders."""
    if path.exists():
        return
    if TOPOLOGY_FOLDERS[0] not in folders and path.name in topologies():
        hint = "a topology has this name: put it under `topology:` of a scenario, and name that"
    elif (near := nearest(path, folders)) is not None:
        hint = f"did you mean '{near}'?"
    elif not path.parent.is_dir():
        hint = f"there is no folder '{path.parent}' to look into"
    else:
        hint = "check the path; it starts in the current folder"
    raise ConfigError(str(path), None, None, problem="no such file", hint=hint)


def nearest(path: Path, folders: Sequence[Path]) -> Path | None:
    """The file whose name is most like that of a path: of the same folder, else of one of some others."""
    for folder in (path.parent, *folders):
        files = {file.stem: file for file in sorted(folder.glob("*.yaml")) + sorted(folder.glob("*.yml"))}
        near = suggest(path.stem, files)
        if near is not None:
            return files[near]
    return None


def topologies() -> dict[str, Path]:
    """Topologies by name: those in ./topologies, and the simulator's own."""
    return {
        file.stem: file for folder in reversed(TOPOLOGY_FOLDERS) for file in sorted(folder.glob("*.yaml"))
    }
