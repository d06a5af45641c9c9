"""The forms as JSON schemas, so that editors complete keys and mark mistakes while one types.

A schema is made from the forms, hence cannot differ from them. A file that extends another is a patch, in
which nothing is required; so is each of the `variants:`. Ignored: rules that join several keys.
"""

from __future__ import annotations

import copy
from typing import Any, Literal

from sim.config.device import Device
from sim.config.form import NamedForm, RootForm
from sim.config.scenario import Scenario
from sim.config.topology import Topology

Json = dict[str, Any]
Kind = Literal["scenario", "topology", "device"]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
FORMS: dict[str, type[RootForm]] = {"scenario": Scenario, "topology": Topology, "device": Device}
PATCH = "Patch"
DOTTED = r"\."
EXTENDS = {"type": "string", "description": "the file that this one is a patch of, relative to this one"}
VARIANTS = "named patches, chosen with --variant NAME; their keys may be dotted, such as pools.prefill.tp"


def schema(kind: Kind) -> Json:
    """The JSON schema of a kind of file."""
    form = FORMS[kind]
    made = form.model_json_schema(mode="validation", ref_template="#/$defs/{model}")
    definitions: Json = made.pop("$defs", {})
    definitions[form.__name__] = made
    for definition in definitions.values():
        without_titles(definition)
    patches = {f"{name}{PATCH}": patch_of(name, definition) for name, definition in definitions.items()}
    whole, patch = definitions[form.__name__], patches[f"{form.__name__}{PATCH}"]
    patch["patternProperties"] = {DOTTED: {}}
    extra: Json = {"extends": EXTENDS}
    if kind == "scenario":
        patches["Variant"] = copy.deepcopy(patch)
        variants = {"type": "object", "additionalProperties": {"$ref": "#/$defs/Variant"}}
        extra["variants"] = {**variants, "description": VARIANTS}
    whole["properties"], patch["properties"] = (part["properties"] | extra for part in (whole, patch))
    return {
        "$schema": DIALECT,
        "title": f"{form.__name__} file of sim",
        "if": {"required": ["extends"]},
        "then": {"$ref": f"#/$defs/{form.__name__}{PATCH}"},
        "else": {"$ref": f"#/$defs/{form.__name__}"},
        "$defs": dict(sorted((definitions | patches).items())),
    }


def without_titles(node: Json) -> None:
    """Take away the titles that pydantic makes of names: they repeat them."""
    if isinstance(node.get("title"), str):
        del node["title"]
    for below in children(node):
        without_titles(below)


def patch_of(name: str, definition: Json) -> Json:
    """A form in which nothing is required but the name by which an item of a list is found."""
    patch = copy.deepcopy(definition)
    loosen(patch)
    if name in {form.__name__ for form in NamedForm.__subclasses__()}:
        patch["required"] = ["name"]
    return patch


def loosen(node: Json) -> None:
    """Make a schema one for patches, in place."""
    node.pop("required", None)
    if "$ref" in node:
        node["$ref"] += PATCH
    for below in children(node):
        loosen(below)


def children(node: Json) -> list[Json]:
    """The schemas directly inside of a schema."""
    below = list(node.get("properties", {}).values())
    for key in ("anyOf", "allOf", "oneOf"):
        below += node.get(key, [])
    return below + [node[key] for key in ("items", "additionalProperties") if isinstance(node.get(key), dict)]
