"""Where a run came from: enough to repeat it elsewhere and to know why it would differ.

Ignores: the machine, apart from its architecture; results must not depend on it.
"""

from __future__ import annotations

import hashlib
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from sim.results.metrics import Figures

PACKAGE = Path(__file__).parents[1]
CATALOG = PACKAGE / "catalog"
PACKAGES: tuple[str, ...] = (
    "kvfabric",
    "simpy",
    "numpy",
    "pandas",
    "pyarrow",
    "pydantic",
    "pyyaml",
    "networkx",
)


@dataclass(frozen=True, slots=True)
class Invocation:
    """How a run was asked for: the command, when, and how long it took; None where nobody noted it."""

    command: tuple[str, ...] = ()
    started_at: str | None = None
    wall_s: float | None = None


def now() -> str:
    """Read the clock: UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def provenance_of(
    figures: Figures, overrides: Sequence[str], invocation: Invocation, inputs: Iterable[Path]
) -> dict[str, Any]:
    """Everything that provenance.json holds; `inputs` are the files that the scenario names."""
    return {
        "digest": figures["digest"],
        "seed": figures["seed"],
        "interrupted": figures["interrupted"],
        "command": list(invocation.command),
        "overrides": list(overrides),
        "started_at": invocation.started_at,
        "wall_s": invocation.wall_s,
        "cpu_s": figures["cpu_s"],
        "events": figures["events"],
        **surroundings(inputs),
    }


def surroundings(inputs: Iterable[Path]) -> dict[str, Any]:
    """What a result may depend on besides the scenario: code, versions, and the contents of files."""
    return {
        "git": git_state(PACKAGE),
        "python": platform.python_version(),
        "architecture": f"{sys.platform}-{platform.machine()}",
        "packages": package_versions(),
        "files": {path.name: file_sha256(path) for path in inputs},
        "catalog": {
            str(path.relative_to(CATALOG)): file_sha256(path) for path in sorted(CATALOG.rglob("*.yaml"))
        },
    }


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What differs between two runs of a scenario that could make their results differ, in words."""
    found = [
        f"{key} {before.get(key)} → {after[key]}"
        for key in ("python", "architecture")
        if before.get(key) != after[key]
    ]
    if (before.get("git") or {}).get("commit") != (after["git"] or {}).get("commit"):
        found.append("another commit of the simulator")
    elif (after["git"] or {}).get("dirty"):
        found.append("uncommitted changes in the simulator")
    for key in ("packages", "files", "catalog"):
        old, new = before.get(key, {}), after[key]
        found += [f"{name} has changed" for name in sorted(old | new) if old.get(name) != new.get(name)]
    return found


def git_state(folder: Path) -> dict[str, Any] | None:
    """The commit of a checkout and whether it has changes; None where there is none."""
    try:
        _git(
            folder, "ls-files", "--error-unmatch", "__main__.py"
        )  # a checkout around an installed copy is another
        commit = _git(folder, "rev-parse", "HEAD").strip()
        dirty = bool(_git(folder, "status", "--porcelain", "--untracked-files=no", "--", str(folder)).strip())
    except (OSError, subprocess.CalledProcessError):
        return None
    return {"commit": commit, "dirty": dirty}


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def package_versions() -> dict[str, str]:
    """Versions of the packages that results rest on."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
