"""Rows of a file with columns: comments on top, a header, and mistakes told at their line.

Lines that begin with `#` are comments. Columns that nobody asks for are left alone, so that a file may say
more than is needed here.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from sim.base.errors import ConfigError, did_you_mean


class Row:
    """One row: its cells by column, read with mistakes that name file, line and column."""

    def __init__(self, file: str, line: int, cells: dict[str, str]) -> None:
        self.file, self.line, self.cells = file, line, cells

    def text(self, column: str) -> str:
        """A cell as it is; empty where the file does not have the column."""
        return self.cells.get(column, "").strip()

    def number(self, column: str) -> float:
        """A cell that holds a number above 0."""
        try:
            value = float(self.text(column))
        except ValueError:
            value = -1.0
        if not 0 < value < float("inf"):
            raise self.mistake(column, f"'{self.text(column)}' is not a number above 0", "write one")
        return value

    def count(self, column: str, least: int = 1) -> int:
        """A cell that holds a whole number."""
        written = self.text(column)
        value = int(written) if written.isascii() and written.isdigit() else -1
        if value < least:
            raise self.mistake(column, f"'{written}' is not a whole number from {least} up", "write one")
        return value

    def flag(self, column: str) -> bool:
        """A cell that says yes; no where it is empty."""
        written = self.text(column).casefold()
        if written not in {"", "no", "yes"}:
            raise self.mistake(column, f"'{written}' is neither yes nor no", "write one of them")
        return written == "yes"

    def mistake(self, column: str, problem: str, hint: str) -> ConfigError:
        """A mistake in this row."""
        return ConfigError(self.file, self.line, None, key=column, problem=problem, hint=hint)


def rows_of(path: Path, needed: Sequence[str]) -> list[Row]:
    """The rows of a CSV file that has at least these columns."""
    lines = list(_lines(path))
    if not lines:
        raise ConfigError(str(path), 1, None, problem="has no rows", hint=f"columns: {', '.join(needed)}")
    header = next(csv.reader([lines[0][1]]))
    for column in needed:
        if column not in header:
            hint = did_you_mean(column, header)
            raise ConfigError(
                str(path), lines[0][0], None, problem=f"there is no column '{column}'", hint=hint
            )
    rows = []
    for number, text in lines[1:]:
        cells = next(csv.reader([text]))
        if len(cells) != len(header):
            problem = f"{len(cells)} cells where the header has {len(header)}"
            raise ConfigError(str(path), number, None, problem=problem, hint="quote cells that have commas")
        rows.append(Row(str(path), number, dict(zip(header, cells, strict=True))))
    return rows


def comments_of(path: Path) -> str:
    """What the comments on top of a file say, as one text."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        found.append(line.lstrip("# ").strip())
    return " ".join(found)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, without comments and empty ones."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        problem = "is not text in UTF-8"
        raise ConfigError(str(path), None, None, problem=problem, hint="give a CSV file") from None
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            yield number, line
