"""Typed reading of one catalogue entry: every key is asked for, and what nobody asked for is a mistake.

A reader such as `Gpu.read(fields)` takes its values from here. Each leaf taken is kept as provenance. A leaf
without source or verification, a bad quantity and an unknown key are refused with their place in the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import yaml

from sim.base.errors import ConfigError, did_you_mean, listed
from sim.base.units import UnitError, parse
from sim.catalog.entry import VERIFIED, Leaf
from sim.catalog.page import Page

LEAF_KEYS = ("value", "source", "verified", "derived", "note")


class Identity(TypedDict):
    """What `Entry` wants from every entry, as keyword arguments."""

    name: str
    title: str
    predecessor: str | None
    provenance: dict[str, Leaf]


class Fields:
    """The keys below one mapping node of a page."""

    def __init__(
        self, page: Page, node: yaml.MappingNode, path: str = "", provenance: dict[str, Leaf] | None = None
    ):
        self.page, self.node, self.path = page, node, path
        self.provenance: dict[str, Leaf] = {} if provenance is None else provenance
        self._asked: list[str] = []
        self._nodes: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        for key, value in node.value:
            if key.value in self._nodes:
                raise self.error(key, key.value, "written twice", "keep one of the two")
            self._nodes[key.value] = (key, value)

    def identity(self) -> Identity:
        """Name, title and predecessor, with the provenance that the other readers will fill."""
        return Identity(
            name=self.label("name"),
            title=self.label("title"),
            predecessor=self.optional_label("predecessor"),
            provenance=self.provenance,
        )

    def has(self, key: str) -> bool:
        """Whether an optional key is there."""
        if key not in self._asked:
            self._asked.append(key)
        return key in self._nodes

    def label(self, key: str) -> str:
        """Read a plain text that is a name, not a fact, so that it needs no source."""
        return self._scalar(self._value(key), key)

    def label_count(self, key: str) -> int:
        """As `label`, for a whole number above zero that tells items apart."""
        return self._whole(key, self.label(key))

    def optional_label(self, key: str) -> str | None:
        """As `label`, or None."""
        return self.label(key) if self.has(key) else None

    def text(self, key: str, choices: Sequence[str] = ()) -> str:
        """Read a sourced word, one of `choices` where there are any."""
        leaf = self._leaf(key)
        if choices and leaf.text not in choices:
            raise self._value_error(key, f"'{leaf.text}' is not possible", did_you_mean(leaf.text, choices))
        return leaf.text

    def flag(self, key: str) -> bool:
        """Read a sourced true or false."""
        return self.text(key, ("true", "false")) == "true"

    def count(self, key: str) -> int:
        """Read a sourced whole number above zero."""
        return self._whole(key, self._leaf(key).text)

    def counts(self, key: str) -> tuple[int, ...]:
        """Read a sourced list of whole numbers in rising order."""
        numbers = tuple(self._whole(key, text) for text in self._items(key))
        if list(numbers) != sorted(set(numbers)):
            raise self._value_error(key, "not in rising order", "sort the numbers, each once")
        return numbers

    def quantity(self, key: str, dimension: str) -> float:
        """Read a sourced number with a unit, in the inner unit of its dimension."""
        return self._parsed(key, self._leaf(key).text, dimension)

    def whole_quantity(self, key: str, dimension: str) -> int:
        """As `quantity`, for dimensions that count whole inner units (time in ps, size in bytes)."""
        return round(self.quantity(key, dimension))

    def table(self, key: str, dimension: str) -> dict[str, float]:
        """Read sourced quantities of one dimension under keys of their own, such as precisions."""
        section = self.section(key)
        values = {name: section.quantity(name, dimension) for name in section._nodes}
        section.close()
        return values

    def curve(self, key: str, x: str, y: str) -> list[tuple[float, float]]:
        """Read a sourced list of points written `8 KiB = 5.05 us`, in rising order."""
        points: list[tuple[float, float]] = []
        for item in self._items(key):
            left, equals, right = item.partition("=")
            if not equals:
                raise self._value_error(key, f"'{item}' is not a point", "write points as `8 KiB = 5 us`")
            points.append((self._parsed(key, left.strip(), x), self._parsed(key, right.strip(), y)))
        if points != sorted(points) or [value for _, value in points] != sorted(value for _, value in points):
            raise self._value_error(key, "the points do not rise", "sort them; a larger one is never faster")
        return points

    def section(self, key: str) -> Fields:
        """Read the keys below a key."""
        node = self._value(key)
        if not isinstance(node, yaml.MappingNode):
            raise self.error(node, key, "not a mapping", "write keys with values below it")
        return Fields(self.page, node, f"{self.path}{key}.", self.provenance)

    def sections(self, key: str) -> list[Fields]:
        """Read the items of a list of mappings below a key."""
        node = self._value(key)
        if not isinstance(node, yaml.SequenceNode):
            raise self.error(node, key, "not a list", "write items that start with `- `")
        return [
            Fields(self.page, item, f"{self.path}{key}.{i}.", self.provenance)
            for i, item in enumerate(node.value)
        ]

    def close(self) -> None:
        """Refuse the keys that nobody asked for."""
        for key, (node, _) in self._nodes.items():
            if key not in self._asked:
                raise self.error(node, key, "unknown key", did_you_mean(key, self._asked))

    def error(self, node: yaml.Node, key: str, problem: str, hint: str | None = None) -> ConfigError:
        """Report a mistake at a key of this mapping."""
        return self.page.error(node, f"{self.path}{key}", problem, hint)

    def _value(self, key: str) -> yaml.Node:
        if not self.has(key):
            raise self.error(self.node, key, "missing", f"add `{key}:`")
        return self._nodes[key][1]

    def _value_error(self, key: str, problem: str, hint: str | None) -> ConfigError:
        node = self._nodes[key][1]
        parts = node.value if isinstance(node, yaml.MappingNode) else []
        spots = [value for name, value in parts if name.value == "value"]
        return self.error(spots[0] if spots else node, key, problem, hint)

    def _scalar(self, node: yaml.Node, key: str) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise self.error(node, key, "not a single value")
        return str(node.value)

    def _parsed(self, key: str, text: str, dimension: str) -> float:
        try:
            return parse(text, dimension)
        except UnitError as error:
            raise self._value_error(key, error.problem, error.hint) from None

    def _whole(self, key: str, text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text) == 0:
            raise self._value_error(
                key, f"'{text}' is not a whole number above zero", "write a number such as 8"
            )
        return int(text)

    def _items(self, key: str) -> tuple[str, ...]:
        leaf = self._leaf(key)
        if isinstance(leaf.value, str):
            raise self._value_error(key, "not a list", "write `value: [...]`")
        return leaf.value

    def _leaf(self, key: str) -> Leaf:
        node = self._value(key)
        if not isinstance(node, yaml.MappingNode):
            hint = f"write `{key}: {{value: ..., source: ..., verified: ...}}`"
            raise self.error(node, key, "a value without a source", hint)
        leaf = self.leaf_of(node, key)
        self.provenance[f"{self.path}{key}"] = leaf
        return leaf

    def leaf_of(self, node: yaml.MappingNode, key: str) -> Leaf:
        """Read a value with its source from a node."""
        parts = {name.value: value for name, value in node.value}
        for name, _ in node.value:
            if name.value not in LEAF_KEYS:
                raise self.error(
                    name, f"{key}.{name.value}", "unknown key", did_you_mean(name.value, LEAF_KEYS)
                )
        for name in LEAF_KEYS[:3]:
            if name not in parts:
                raise self.error(
                    node, key, f"a value without {name}", f"add `{name}:`; see sources.yaml for sources"
                )
        value = parts.pop("value")
        texts = {name: self._scalar(part, f"{key}.{name}") for name, part in parts.items()}
        if texts["verified"] not in VERIFIED:
            hint = f"choose from {listed(list(VERIFIED))}"
            raise self.error(
                parts["verified"], f"{key}.verified", f"unknown mark '{texts['verified']}'", hint
            )
        if texts["verified"] == "assumption" and "note" not in texts:
            raise self.error(node, key, "an assumption without a reason", "add `note:` with the reason")
        return Leaf(value=self._leaf_value(value, key), line=node.start_mark.line + 1, **texts)

    def _leaf_value(self, node: yaml.Node, key: str) -> str | tuple[str, ...]:
        if isinstance(node, yaml.SequenceNode):
            return tuple(self._scalar(item, key) for item in node.value)
        return self._scalar(node, key)
