"""Loading: from files, variants and overrides to a checked form.

The order is the chain of `extends` from its root on, then the variant, then the overrides; each patches
what is before it (see sim.config.overrides). All mistakes that can be found are reported at once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from sim.base.errors import ConfigError, ConfigErrors, ValueProblem, did_you_mean
from sim.config import paths, yamlfile
from sim.config.document import Document
from sim.config.dump import dump
from sim.config.form import RootForm
from sim.config.marks import Node
from sim.config.overrides import patched, with_changes, with_sets
from sim.config.scenario import Scenario
from sim.config.topology import Topology
from sim.config.validation import ordered, validate

__all__ = ["dump", "load_form", "load_scenario", "load_topology", "replaced"]

F = TypeVar("F", bound=RootForm)
DEEPEST_CHAIN = 10


def load_scenario(path: Path | str, sets: Sequence[str] = (), variant: str | None = None) -> Scenario:
    """The scenario in a file, in one of its variants, with each KEY=VALUE of `sets` laid over it."""
    shown = str(path)
    errors: list[ConfigError] = []
    root = chain(Path(path), shown, errors, ())
    if root is None:
        raise ConfigErrors(ordered(errors))
    items = dict(root.items)
    variants = items.pop("variants", None)
    root = root.with_value(items)
    if variants is not None and not all(item.is_mapping for item in (variants, *variants.items.values())):
        wrong = next(item for item in (variants, *variants.items.values()) if not item.is_mapping)
        hint = "write `name: {key: value}` for each variant"
        errors.append(wrong.mark.error("variants", "must be a mapping of names to patches", hint))
    names = tuple(variants.items) if variants is not None else ()
    if variant is not None and variant in names and variants is not None:
        root = patched(root, variants.items[variant], errors, f"variants.{variant}")
    elif variant is not None:
        errors.append(unknown_variant(variant, shown, names))
    root = with_sets(root, sets, errors)
    return validate(Scenario, Document(root, Path(path), names, variant, tuple(sets)), errors)


def unknown_variant(variant: str, shown: str, names: Sequence[str]) -> ConfigError:
    """What to say about a variant that the file does not offer."""
    hint = did_you_mean(variant, names) if names else f"{shown} has no `variants:`"
    problem = f"unknown variant '{variant}'"
    return ConfigError(f"--variant {variant}", None, None, problem=problem, hint=hint)


def load_topology(path: Path | str) -> Topology:
    """The topology in a file."""
    return load_form(Topology, path)


def load_form(form: type[F], path: Path | str) -> F:
    """Any form in a file, which may extend another."""
    errors: list[ConfigError] = []
    root = chain(Path(path), str(path), errors, ())
    if root is None:
        raise ConfigErrors(ordered(errors))
    return validate(form, Document(root, Path(path)), errors)


def chain(path: Path, shown: str, errors: list[ConfigError], below: tuple[Path, ...]) -> Node | None:
    """The tree of a file laid over that of the file it extends; `below` are the files that extend it."""
    node = yamlfile.read(path, shown, errors)
    if node is None:
        return None
    items = dict(node.items)
    extends = items.pop("extends", None)
    node = node.with_value(items)
    if extends is None or extends.value is None:
        return node
    parent = parent_of(extends, shown, (*below, path.resolve()), errors)
    return node if parent is None else patched(parent, node, errors).placed(node.mark)


def parent_of(extends: Node, shown: str, below: tuple[Path, ...], errors: list[ConfigError]) -> Node | None:
    """The tree that an `extends:` names; None, with the mistake noted, where there is none."""

    def fault(problem: str, hint: str | None) -> None:
        errors.append(extends.mark.error("extends", problem, hint))

    if not isinstance(extends.value, str):
        return fault(
            "must be the path of one file", "a scenario has one parent; name it relative to this file"
        )
    try:
        path = paths.resolve(extends.value, extends.mark.source)
    except ValueProblem as problem:
        return fault(problem.problem, problem.hint)
    if path in below:
        return fault(
            "extends itself", f"one of {', '.join(file.name for file in below)} must not extend another"
        )
    if len(below) >= DEEPEST_CHAIN:
        return fault(f"more than {DEEPEST_CHAIN} files extend each other", "merge some of them")
    if not path.is_file():
        return fault(f"no such file: {extends.value}", yamlfile.nearby(path))
    parent_shown = os.path.normpath(Path(shown).parent / extends.value)
    return chain(path, parent_shown, errors, below)


def replaced(form: F, changes: Mapping[str, object]) -> F:
    """A changed and checked copy of a form."""
    errors: list[ConfigError] = []
    document = form.document
    root = with_changes(document.root, changes, errors)
    return validate(
        type(form), Document(root, document.path, document.variants, document.variant, document.sets), errors
    )
