"""What documents say can be done can be done, and what they name is there."""

from __future__ import annotations

import re
import textwrap

import pytest
import typer
from documents import DOCUMENTS, ROOT, Block, blocks, named

import sim
from sim.cli.app import app
from sim.results.store import RUN_FILES

FOLDERS = ("docs", "notebooks", "scenarios", "schemas", "sim", "tests", "tools", "topologies")
LINK = re.compile(r"\]\((?!https?://)(?P<target>[^)#]+)")
PATH = re.compile(rf"`(?P<path>(?:{'|'.join(FOLDERS)})/[\w./*-]+)`")
VERB = re.compile(r"(?:`|^|/)sim (?P<verb>[a-z]+)", re.MULTILINE)
with_blocks = [path for path in DOCUMENTS if blocks(path.read_text())]


@pytest.mark.slow
@pytest.mark.parametrize("path", with_blocks, ids=named)
def test_runnable_blocks_run(path, run):
    for block in blocks(path.read_text()):
        done = run(block)
        assert done.returncode == 0, f"{path.name}:{block.line}: {done.stdout}{done.stderr}"
        assert "Traceback" not in done.stderr


def test_the_readme_has_blocks_to_run_in_both_languages():
    languages = {block.language for block in blocks((ROOT / "README.md").read_text())}
    assert languages == {"sh", "python"}


@pytest.mark.slow
def test_the_example_of_the_package_runs(run):
    lines = (sim.__doc__ or "").splitlines()
    example = textwrap.dedent("\n".join(line for line in lines if line.startswith("    ")))
    done = run(Block("python", example, 1))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("hello")


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_links_and_paths_lead_somewhere(path):
    text = path.read_text()
    for found in LINK.finditer(text):
        assert (path.parent / found["target"]).exists(), found["target"]
    for found in PATH.finditer(text):
        assert list(ROOT.glob(found["path"].replace("NAME", "*"))), found["path"]


def test_the_readme_links_every_page():
    linked = {found["target"] for found in LINK.finditer((ROOT / "README.md").read_text())}
    pages = {str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")}
    assert len(pages) >= 5
    assert pages <= linked


@pytest.mark.parametrize("path", DOCUMENTS, ids=named)
def test_verbs_exist(path):
    verbs = set(typer.main.get_command(app).commands)
    named_verbs = {found["verb"] for found in VERB.finditer(path.read_text())}
    assert named_verbs <= verbs


def test_the_readme_lists_the_files_of_a_run():
    listed = re.findall(r"^\| `([\w.]+)` \|", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(RUN_FILES)


def test_blocks_are_found_with_their_lines():
    text = "text\n\n```sh run\nfalse\n```\n```sh\nnot this\n```\n```python run\nx = 1\n```\n"
    assert blocks(text) == [Block("sh", "false\n", 4), Block("python", "x = 1\n", 10)]


def test_a_block_that_fails_is_seen(run):
    assert run(Block("sh", "sim check nowhere.yaml\ntrue\n", 1)).returncode == 2
    assert run(Block("python", "raise SystemExit(4)\n", 1)).returncode == 4
