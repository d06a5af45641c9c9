"""Loading: from files, variants and overrides to a checked form.

The order is the chain of `extends` from its root on, then the variant, then the overrides; each patches
what is before it (see sim.config.overrides). All mistakes that can be found are reported at once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from sim.base.errors import ConfigError, ConfigErrors, ValueProblem, did_you_mean
from sim.config import paths, yamlfile
from sim.config.document import Document
from sim.config.dump import dump
from sim.config.form import RootForm
from sim.config.marks import Node
from sim.config.overrides import Override, overridden, patched
from sim.config.scenario import Scenario
from sim.config.topology import Topology
from sim.config.validation import ordered, validate

__all__ = ["dump", "load_form", "load_scenario", "load_topology", "overlaid", "replaced", "variants_in"]

F = TypeVar("F", bound=RootForm)
DEEPEST_CHAIN = 10
AT_THE_FILE = "at the file in which it is written"
"""Where a path begins that is written in a file."""


def load_scenario(path: Path | str, sets: Sequence[str] = (), variant: str | None = None) -> Scenario:
    """The scenario in a file, in one of its variants, with each KEY=VALUE of `sets` laid over it."""
    errors: list[ConfigError] = []
    root = chain(Path(path), str(path), errors, ())
    if root is None:
        raise ConfigErrors(ordered(errors))
    items = dict(root.items)
    variants = patches_of(items.pop("variants", None), errors)
    root = root.with_value(items)
    names: list[str] = []
    if variant is not None:
        names.append(f"--variant {variant}")
        root = varied(root, variants, variant, errors)
    overrides = [Override.of_text(setting) for setting in sets]
    names += [override.name for override in overrides]
    root = overridden(root, overrides, errors)
    return validate(Scenario, Document(root, Path(path), tuple(variants), tuple(names)), errors)


def variants_in(path: Path | str) -> tuple[str, ...]:
    """The names of the variants that a scenario file offers, whatever else is wrong with it."""
    errors: list[ConfigError] = []
    root = chain(Path(path), str(path), errors, ())
    return () if root is None else tuple(patches_of(root.items.get("variants"), errors))


def patches_of(variants: Node | None, errors: list[ConfigError]) -> dict[str, Node]:
    """The patches under `variants:` by name."""
    if variants is None or variants.value is None:
        return {}
    hint = "write `name: {key: value}` for each variant"
    if not variants.is_mapping:
        errors.append(variants.mark.error("variants", "must be a mapping of names to patches", hint))
    for name, patch in variants.items.items():
        if not patch.is_mapping:
            errors.append(patch.mark.error(f"variants.{name}", "must be a mapping of keys to values", hint))
    return {name: patch for name, patch in variants.items.items() if patch.is_mapping}


def varied(root: Node, variants: Mapping[str, Node], variant: str, errors: list[ConfigError]) -> Node:
    """A tree with one of its variants laid over it."""
    if variant in variants:
        return patched(root, variants[variant], errors, f"variants.{variant}")
    hint = did_you_mean(variant, variants) if variants else "the file has no `variants:`"
    problem = f"unknown variant '{variant}'"
    errors.append(ConfigError(f"--variant {variant}", None, None, problem=problem, hint=hint))
    return root


def load_topology(path: Path | str) -> Topology:
    """The topology in a file."""
    return load_form(Topology, path)


def load_form(form: type[F], path: Path | str) -> F:
    """Any form in a file, which may extend another."""
    errors: list[ConfigError] = []
    root = chain(Path(path), paths.as_known(Path(path)), errors, ())
    if root is None:
        raise ConfigErrors(ordered(errors))
    return validate(form, Document(root, Path(path)), errors)


def chain(
    path: Path, shown: str, errors: list[ConfigError], below: tuple[Path, ...], root: Path | None = None
) -> Node | None:
    """The tree of a file laid over that of the file it extends.

    `below` are the files that led here, `root` the folder that bounds them.
    """
    is_inside = root is not None and path.resolve().is_relative_to(root)
    node = yamlfile.read(path, shown, errors, root if is_inside else None)
    if node is None:
        return None
    items = dict(node.items)
    extends = items.pop("extends", None)
    node = node.with_value(items)
    if extends is None or extends.value is None:
        return node
    try:
        below = (*below, path.resolve())
        parent_file = parent_path(extends, below)
    except ValueProblem as fault:
        errors.append(extends.mark.error("extends", fault.problem, fault.hint))
        return node
    parent_shown = os.path.normpath(Path(shown).parent / str(extends.value))
    parent = chain(parent_file, parent_shown, errors, below, node.mark.source.root)
    return node if parent is None else patched(parent, node, errors).placed(node.mark)


def parent_path(extends: Node, below: tuple[Path, ...]) -> Path:
    """The file that an `extends:` names; `below` are those that led here."""
    if not isinstance(extends.value, str):
        raise ValueProblem(
            "must be the path of one file", "a file extends one other; name it relative to this one"
        )
    path = paths.resolve(extends.value, extends.mark.source)
    if path in below:
        circle = " -> ".join(file.name for file in (*below, path))
        raise ValueProblem(f"the files extend each other in a circle: {circle}", "take one `extends:` away")
    if len(below) >= DEEPEST_CHAIN:
        raise ValueProblem(f"more than {DEEPEST_CHAIN} files extend each other", "merge some of them")
    if not paths.is_file(path):
        what = "is a folder, not a file" if path.is_dir() else "no such file"
        raise ValueProblem(f"{what}: {extends.value}", yamlfile.nearby(path, below, AT_THE_FILE))
    return path


def replaced(form: F, changes: Mapping[str, object]) -> F:
    """A changed and checked copy of a form."""
    return overlaid(form, [Override.of_value(key, value) for key, value in changes.items()])


def overlaid(form: F, overrides: Sequence[Override]) -> F:
    """A checked copy of a form with overrides laid over it."""
    errors: list[ConfigError] = []
    document = form.document
    root = overridden(document.root, overrides, errors)
    names = (*document.overrides, *(override.name for override in overrides))
    return validate(type(form), replace(document, root=root, overrides=names), errors)
