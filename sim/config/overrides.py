"""Patches of a tree: what `extends`, `variants` and `--set` do to the values below them.

A patch merges. Mappings merge key by key; two lists whose items all have a `name` merge by name, new names
joining at the end; everything else is replaced. `null` takes a key back to its default, and a named item
out of its list. A dotted key goes into the tree: `pools.prefill.tp` by name, `pools.0.tp` by index,
`pools.*.tp` for all items. Ignored: expressions of any kind.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sim.base.errors import ConfigError, ValueProblem, did_you_mean
from sim.config import yamlfile
from sim.config.marks import Mark, Node, Source

EVERY = "*"


def merge(base: Node, patch: Node) -> Node:
    """The base with the patch laid over it."""
    if base.is_mapping and patch.is_mapping:
        items = dict(base.items)
        for key, item in patch.items.items():
            items[key] = merge(items[key], item) if key in items else item
        return base.with_value(items)
    if is_named_list(base) and is_named_list(patch):
        return base.with_value(merge_named(base.elements, patch.elements))
    return patch


def is_named_list(node: Node) -> bool:
    """Whether a list has items, and all of them have names."""
    return bool(node.elements) and all(element.name is not None for element in node.elements)


def merge_named(base: Sequence[Node], patch: Sequence[Node]) -> list[Node]:
    """The items of the base with those of the same name laid over them, and the new ones."""
    patches = {item.name: item for item in patch}
    names = {item.name for item in base}
    changed = [merge(item, patches[item.name]) if item.name in patches else item for item in base]
    return changed + [item for item in patch if item.name not in names]


def assign(node: Node, keys: Sequence[str], patch: Node, path: str = "") -> Node:
    """The tree with a patch laid over the value at some keys; `path` leads to the tree."""
    if not keys:
        return merge(node, patch)
    if isinstance(node.value, list):
        return assign_element(node, keys, patch, path)
    if not node.is_mapping and node.value is not None:
        raise ValueProblem(
            f"{path} has no keys, so no '{keys[0]}'", f"its value is {node.value!r}; set it as a whole"
        )
    key, *rest = keys
    below = node.items.get(key)
    if not rest:
        changed = patch if below is None else merge(below, patch)
    else:
        empty = Node({}, replace(patch.mark, is_named=False))
        changed = assign(below or empty, rest, patch, yamlfile.joined(path, key))
    return node.with_value({**node.items, key: changed})


def assign_element(node: Node, keys: Sequence[str], patch: Node, path: str) -> Node:
    """Assign to one item of a list, found by name or index, or to every one."""
    key, *rest = keys
    elements = list(node.elements)
    index = node.index(key)
    if key != EVERY and index is None:
        raise ValueProblem(f"{path} has no item '{key}'", item_hint(node, key))
    if key == EVERY and not elements:
        raise ValueProblem(f"{path} has no items", "add one first")
    targets = range(len(elements)) if index is None else [index]
    if not rest and patch.value is None:
        return node.with_value([item for position, item in enumerate(elements) if position not in targets])
    for position in targets:
        elements[position] = assign(elements[position], rest, patch, yamlfile.joined(path, str(position)))
    return node.with_value(elements)


def item_hint(node: Node, key: str) -> str:
    """How the items of a list can be addressed."""
    names = [item.name for item in node.elements if item.name is not None]
    if names and not key.isdigit():
        return did_you_mean(key, names)
    count = len(node.elements)
    known = f"; their names are {', '.join(names)}" if names else ""
    return f"it has {count} {'item' if count == 1 else 'items'}, counted from 0{known}"


def patched(node: Node, patch: Node, errors: list[ConfigError], path: str = "") -> Node:
    """A tree with a patch laid over it, whose keys may be dotted; `path` is where the patch is written."""
    for key, item in patch.items.items():
        if "." not in key:
            node = node.with_value(merge(node, patch.with_value({key: item})).items)
            continue
        try:
            node = assign(node, key.split("."), item)
        except ValueProblem as fault:
            errors.append(item.mark.error(yamlfile.joined(path, key), fault.problem, fault.hint))
    return node


@dataclass(frozen=True)
class Override:
    """One value for one dotted key from outside the file; `name` is how the user knows it."""

    name: str
    key: str
    value: str | object
    is_text: bool

    @classmethod
    def of_text(cls, setting: str, option: str = "--set") -> Override:
        """A KEY=VALUE of the command line; the value is YAML."""
        key, equals, text = setting.partition("=")
        name = f"{option} {' '.join(setting.split())}"
        return cls(name, key.strip() if equals else "", text, is_text=True)

    @classmethod
    def of_value(cls, key: str, value: object) -> Override:
        """A Python value."""
        return cls(f"replace {' '.join(f'{key}={value}'.split())}", key, value, is_text=False)

    def node(self, errors: list[ConfigError]) -> Node | None:
        """The value; None, with the mistake noted, where there is none."""
        mark = Mark(Source(self.name, Path.cwd()), is_named=True)
        if not all(self.key.split(".")):
            errors.append(mark.error("", "is not KEY=VALUE", "write it as in `--set run.seed=2`"))
            return None
        if not self.is_text:
            return node_of(self.value, mark)
        found: list[ConfigError] = []
        value = yamlfile.parse(str(self.value), mark.source, found)
        if value is None and not found:
            found.append(mark.error("", "has no value", "write one after the `=`, or `null` for the default"))
        errors += found
        return None if value is None or found else value.placed(mark)


def overridden(node: Node, overrides: Iterable[Override], errors: list[ConfigError]) -> Node:
    """A tree with overrides laid over it in their order; one that fails leaves it as it is."""
    for override in overrides:
        value = override.node(errors)
        if value is None:
            continue
        try:
            node = assign(node, override.key.split("."), value)
        except ValueProblem as fault:
            errors.append(value.mark.error("", fault.problem, fault.hint))
    return node


def node_of(value: object, mark: Mark) -> Node:
    """A Python value as a node."""
    if isinstance(value, Mapping):
        return Node({str(key): node_of(item, mark) for key, item in value.items()}, mark)
    if isinstance(value, list | tuple | set | frozenset | range):
        return Node([node_of(item, mark) for item in value], mark)
    if value is None or isinstance(value, bool | str):
        return Node(value, mark)
    if isinstance(value, numbers.Integral):
        return Node(int(value), mark)
    if isinstance(value, numbers.Real):
        return Node(float(value), mark)
    return Node(str(value), mark)
