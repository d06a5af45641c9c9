"""Paths written by users: where they start, and how far they may lead.

A relative path starts at the file in which it is written and stays inside its repository (the nearest
folder above with `.git`, else with `pyproject.toml`), or without one inside the folder of the file.
Absolute paths, and paths given on the command line or in Python, may lead anywhere. Links are followed
before judging. Whether there is such a file is judged elsewhere.
"""

from __future__ import annotations

from pathlib import Path

from sim.base.errors import ValueProblem
from sim.config.marks import Source, Written

ROOT_MARKS = (".git", "pyproject.toml")


def boundary(file: Path) -> Path:
    """The folder that relative paths in a file may not leave."""
    folder = file.resolve().parent
    for mark in ROOT_MARKS:
        for above in (folder, *folder.parents):
            if (above / mark).exists():
                return above
    return folder


def resolve(text: str, source: Source | None = None) -> Path:
    """The absolute path that a text stands for where it is written."""
    if source is None and isinstance(text, Written):
        source = text.source
    folder = Path.cwd() if source is None else source.folder
    if not text.strip() or "\0" in text:
        raise ValueProblem("is no path", "name a file, relative to the file in which you write it")
    path = Path(text)
    try:
        absolute = (folder / path).resolve()
    except (OSError, RuntimeError) as error:
        raise ValueProblem(f"is no path: {error}", "name a file") from None
    root = source.root if source is not None else None
    if (
        source is not None
        and root is not None
        and not path.is_absolute()
        and not absolute.is_relative_to(root)
    ):
        where = "the folder of this file" if root == source.folder else "the repository"
        raise ValueProblem(
            f"'{text}' leads out of {where}", "move the file inside, or write its absolute path"
        )
    return absolute


def resolve_name(text: str) -> str:
    """A path, or a bare word as it is where no file of that name exists: the name of a known trace."""
    path = resolve(text)
    is_word = "/" not in text and "\\" not in text
    return str(text) if is_word and not is_file(path) else str(path)


def is_file(path: Path) -> bool:
    """Whether there is such a file; no for what the system cannot even look for."""
    try:
        return path.is_file()
    except OSError:
        return False


def relative(path: str, folder: Path) -> str:
    """How a path is written in a file in `folder`: relative inside the same boundary, else as it is."""
    absolute = Path(path)
    root = boundary(folder / "file")
    if not absolute.is_absolute() or not absolute.is_relative_to(root):
        return path
    return climbing(absolute, folder.resolve())


def climbing(path: Path, folder: Path) -> str:
    """A relative path that may climb; pathlib has it from Python 3.12 on."""
    steps = 0
    while not path.is_relative_to(folder):
        folder, steps = folder.parent, steps + 1
    return "/".join([".."] * steps + list(path.relative_to(folder).parts))


def as_known(path: Path) -> str:
    """A path as its user knows it: from the current folder on, where it lies in there."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_absolute() and path.is_relative_to(here) else str(path)
