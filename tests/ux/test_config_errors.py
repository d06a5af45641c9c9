"""Every mistake in a scenario, word for word.

A case is two files in `config/`: `case.yaml`, a scenario with a mistake, and `case.txt`, what the user is
told. The last line of the scenario may be a comment with options, as in `# --set run.seed=x`. Each case is
read in a copy of the folder, so that no repository is around it.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from sim.base.errors import ConfigErrors
from sim.config.load import load_scenario

CASES = Path(__file__).parent / "config"
OPTION = re.compile(r"--(set|variant) (.*?)(?= --set | --variant |$)")


def told(case: str) -> str:
    """What a user is told about a case in the current folder."""
    file = f"{case}.yaml"
    last = Path(file).read_bytes().decode(errors="replace").rstrip("\n").rpartition("\n")[2]
    options = OPTION.findall(last.removeprefix("# ")) if last.startswith("# --") else []
    sets = [text for option, text in options if option == "set"]
    variant = next((text for option, text in options if option == "variant"), None)
    with pytest.raises(ConfigErrors) as caught:
        load_scenario(file, sets, variant)
    return f"{caught.value}\n"


@pytest.mark.parametrize("case", sorted(path.stem for path in CASES.glob("*.yaml")))
def test_message(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(CASES, tmp_path / "study")
    monkeypatch.chdir(tmp_path / "study")
    assert told(case) == (CASES / f"{case}.txt").read_text(encoding="utf-8")


def test_every_text_has_its_case() -> None:
    assert {path.stem for path in CASES.glob("*.txt")} == {path.stem for path in CASES.glob("*.yaml")}
