"""Notebooks run at small size, hold no outputs, and read like pages."""

from __future__ import annotations

import shutil

import nbformat
import pytest
from documents import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LONGEST_CELL = 10
LONGEST_RUN_S = 300


def stem(path):
    return path.stem


def code_of(path):
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=stem)
def test_outputs_are_stripped(path):
    for cell in code_of(path):
        assert (cell.outputs, cell.execution_count) == ([], None), f"strip the outputs of {path.name}"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=stem)
def test_cells_are_short(path):
    assert all(len(cell.source.splitlines()) <= LONGEST_CELL for cell in code_of(path))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=stem)
def test_the_readme_links_it(path):
    assert f"(notebooks/{path.name})" in (ROOT / "README.md").read_text()


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=stem)
def test_it_runs(path, tmp_path, monkeypatch):
    """In a folder as a reader has it: the notebook in one folder, scenarios and topologies beside that."""
    from nbclient import NotebookClient  # noqa: PLC0415 - only where it is run

    for folder in ("scenarios", "topologies"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "notebooks").mkdir()
    monkeypatch.setenv("SIM_QUICK", "1")
    notebook = nbformat.read(path, as_version=4)
    where = {"metadata": {"path": str(tmp_path / "notebooks")}}
    NotebookClient(notebook, timeout=LONGEST_RUN_S, resources=where).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert any("image/png" in output.get("data", {}) for output in shown), "it shows no picture"
    said = "".join(output.get("text", "") for output in shown)
    assert "Warning" not in said
    assert len(said.split()) > 10, "it gives no answer in words"
