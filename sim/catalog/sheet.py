"""A file of somebody else's form, copied into an entry as it is: all of it from one source.

    config:
      source: aic-configs
      verified: primary
      values: {model_type: llama, num_hidden_layers: 32}

A value may also be a leaf with a source of its own, where it was read elsewhere. What comes out is a tree
that knows the place of every value, as of a file that a user gives.
"""

from __future__ import annotations

from dataclasses import replace

import yaml

from sim.base.errors import ValueProblem, listed
from sim.catalog.entry import VERIFIED, Leaf
from sim.catalog.fields import Fields
from sim.config import scalars
from sim.config.marks import Mark, Node, Scalar, Source


def sheet(fields: Fields, key: str) -> Node:
    """Read the values under a key; each becomes provenance under its own path."""
    section = fields.section(key)
    parts = {name: section.label(name) for name in ("source", "verified")}
    parts |= {name: section.label(name) for name in ("derived", "note") if section.has(name)}
    values = section.section("values")
    section.close()
    if parts["verified"] not in VERIFIED:
        hint = f"choose from {listed(list(VERIFIED))}"
        raise section.error(section.node, "verified", f"unknown mark '{parts['verified']}'", hint)
    derived, note = parts.get("derived"), parts.get("note")
    reader = _Reader(values, Leaf("", parts["source"], parts["verified"], derived, note))
    return reader.tree(values.node, f"{key}.")


class _Reader:
    """Turns YAML nodes into a tree, and notes a leaf for each value."""

    def __init__(self, fields: Fields, common: Leaf) -> None:
        self.fields, self.common = fields, common
        page = fields.page
        self.source = Source(str(page.path), page.path.parent, None, tuple(page.text.splitlines()))

    def tree(self, node: yaml.Node, path: str, at: Mark | None = None) -> Node:
        """One node with all below it; `path` ends with a dot."""
        mark = at or self._mark(node)
        if isinstance(node, yaml.MappingNode):
            parts = {name.value: value for name, value in node.value}
            if {"value", "source"} <= set(parts):
                leaf = self.fields.leaf_of(node, path.rstrip("."))
                self.fields.provenance[path.rstrip(".")] = leaf
                return Node(self._value(parts["value"]), mark)
            items = {
                name.value: self.tree(value, f"{path}{name.value}.", self._mark(name))
                for name, value in node.value
            }
            return Node(items, mark)
        leaf_value = self._texts(node)
        self.fields.provenance[path.rstrip(".")] = replace(
            self.common, value=leaf_value, line=node.start_mark.line + 1
        )
        return Node(self._value(node), mark)

    def _value(self, node: yaml.Node) -> Scalar | list[Node]:
        if isinstance(node, yaml.SequenceNode):
            return [Node(self._value(item), self._mark(item)) for item in node.value]
        if isinstance(node, yaml.ScalarNode) and node.style:
            return str(node.value)
        try:
            return scalars.resolve(node.value)
        except ValueProblem as problem:
            raise self.fields.page.error(node, "", problem.problem, problem.hint) from None

    def _texts(self, node: yaml.Node) -> str | tuple[str, ...]:
        if isinstance(node, yaml.SequenceNode):
            return tuple(str(item.value) for item in node.value)
        return str(node.value)

    def _mark(self, node: yaml.Node) -> Mark:
        return Mark(self.source, node.start_mark.line + 1, node.start_mark.column + 1)
