"""The documents of the repository, and the fenced blocks that say `run` after their language."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")))
BLOCK = re.compile(r"^```(?P<language>\w+) run\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A block that can be run: its language, its text and the line it starts at."""

    language: str
    text: str
    line: int


def blocks(text: str) -> list[Block]:
    """The runnable blocks of a document, in order."""
    return [
        Block(found["language"], found["text"], text.count("\n", 0, found.start()) + 2)
        for found in BLOCK.finditer(text)
    ]


def named(path: Path) -> str:
    """The name of a document in test reports."""
    return path.relative_to(ROOT).as_posix()
