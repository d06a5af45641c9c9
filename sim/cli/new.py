"""`sim new`: start a study from a commented example."""

from __future__ import annotations

import shutil
from pathlib import Path

from sim.base.errors import ConfigError

TEMPLATE = Path(__file__).parents[1] / "templates" / "study"


def start_study(folder: Path) -> None:
    """Copy the example into a new or empty folder; nothing is ever overwritten."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        problem = "already there and not empty" if folder.is_dir() else "is a file"
        raise ConfigError(
            str(folder), None, None, problem=problem, hint="name a new folder; nothing is overwritten"
        )
    shutil.copytree(TEMPLATE, folder, dirs_exist_ok=True)
    for path in sorted(folder.iterdir()):
        print(f"made {path}")
    print(f"next: sim run {folder / 'scenario.yaml'}")
