"""A folder as a newcomer has it: scenarios and topologies, the command on the path, and nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from documents import ROOT, Block

Run = Callable[[Block], "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs blocks in one folder, one after the other."""
    for folder in ("scenarios", "topologies"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "pyproject.toml").touch()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    commands = {
        "sh": ["bash", "-euo", "pipefail", "-c"],
        "python": [sys.executable, "-W", "error", "-c"],
    }

    def play(block: Block) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*commands[block.language], block.text],
            check=False,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=os.environ | {"PATH": path},
        )

    return play
