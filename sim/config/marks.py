"""Values with the place at which they are written, so that every mistake can be pointed at.

A Node is a scalar, a list or a mapping together with its Mark; the mark of a mapping's item is that of
its key. A Source is a file, or an override such as a `--set`. Nodes are never changed in place.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from sim.base.errors import ConfigError

Scalar = str | int | float | bool | None
EXCERPT_WIDTH = 100


@dataclass(frozen=True)
class Source:
    """A text with values in it: its name for people, and where paths written in it start.

    `lines` is None for an override. `root` is the folder that a relative path may not leave, None where
    it may lead anywhere.
    """

    name: str
    folder: Path
    root: Path | None = None
    lines: tuple[str, ...] | None = None

    @property
    def is_file(self) -> bool:
        """Whether it has lines to show."""
        return self.lines is not None


@dataclass(frozen=True)
class Mark:
    """A spot in a source, counted from 1.

    `is_named` says that the source names the spot itself: the KEY of a `--set`.
    """

    source: Source
    line: int = 1
    column: int = 1
    is_named: bool = False

    def error(self, key: str, problem: str, hint: str | None = None) -> ConfigError:
        """A mistake at this spot."""
        if self.source.is_file:
            return ConfigError(
                self.source.name,
                self.line,
                self.column,
                key=key,
                problem=problem,
                hint=hint,
                excerpt=self.excerpt(),
            )
        return ConfigError(self.source.name, None, None, key=key, problem=problem, hint=hint)

    def excerpt(self) -> str | None:
        """The line with a caret under the spot; a long line is cut around it."""
        lines = self.source.lines or ()
        if not 1 <= self.line <= len(lines) or not lines[self.line - 1].strip():
            return None
        line, column = lines[self.line - 1], self.column - 1
        start = max(0, column - EXCERPT_WIDTH // 2) if len(line) > EXCERPT_WIDTH else 0
        shown = "".join(c if c.isprintable() else " " for c in line[start : start + EXCERPT_WIDTH]).rstrip()
        before = "".join(c if c.isprintable() else " " for c in line[start:column])
        return f"{self.line:4d} | {shown}\n{' ' * (7 + width(before))}^"


def width(text: str) -> int:
    """How many cells of a terminal a text takes."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.combining(c) > 0 for c in text)


@dataclass(frozen=True)
class Node:
    """A value and where it is written."""

    value: Scalar | list[Node] | dict[str, Node]
    mark: Mark

    @property
    def is_mapping(self) -> bool:
        """Whether it has keys."""
        return isinstance(self.value, dict)

    @property
    def items(self) -> dict[str, Node]:
        """The items of a mapping; nothing for the rest."""
        return self.value if isinstance(self.value, dict) else {}

    @property
    def elements(self) -> list[Node]:
        """The items of a list; nothing for the rest."""
        return self.value if isinstance(self.value, list) else []

    @property
    def name(self) -> str | None:
        """What an item of a list calls itself."""
        named = self.items.get("name")
        return named.value if named is not None and isinstance(named.value, str) else None

    def with_value(self, value: Scalar | list[Node] | dict[str, Node]) -> Node:
        """Another value at the same place."""
        return replace(self, value=value)

    def placed(self, mark: Mark) -> Node:
        """The same value at another place."""
        return replace(self, mark=mark)

    def child(self, key: str) -> Node | None:
        """The item under a key of a mapping, or under a name or an index of a list."""
        if isinstance(self.value, dict):
            return self.value.get(key)
        index = self.index(key)
        return None if index is None else self.elements[index]

    def index(self, key: str) -> int | None:
        """The position of the list item with a name, or with an index written in digits."""
        for position, element in enumerate(self.elements):
            if element.name == key:
                return position
        is_index = key.isascii() and key.isdigit() and len(key) < 6 and int(key) < len(self.elements)
        return int(key) if is_index else None

    def walk(self, keys: tuple[str, ...]) -> Iterator[Node]:
        """The nodes on the way along some keys, as far as there are any, from this one on."""
        node: Node | None = self
        yield self
        for key in keys:
            node = node.child(key) if node is not None else None
            if node is None:
                return
            yield node


class Written(str):
    """A text that knows its source; to everything else a plain str."""

    __slots__ = ("source",)
    source: Source

    def __new__(cls, text: str, source: Source) -> Written:
        """Join a text and its source."""
        made = super().__new__(cls, text)
        made.source = source
        return made


def plain(node: Node) -> object:
    """The tree without marks; keys with null are left out, as if they were not written."""
    if isinstance(node.value, dict):
        return {key: plain(item) for key, item in node.value.items() if item.value is not None}
    if isinstance(node.value, list):
        return [plain(element) for element in node.value]
    return Written(node.value, node.mark.source) if isinstance(node.value, str) else node.value
