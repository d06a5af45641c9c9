"""`sim schema`: the JSON schema of what a user may write, from the forms themselves."""

from __future__ import annotations

import json
import sys
from typing import Any

from sim.base.errors import UnknownNameError
from sim.config.form import RootForm
from sim.config.scenario import Scenario
from sim.config.topology import Topology

FORMS: dict[str, type[RootForm]] = {"scenario": Scenario, "topology": Topology}


def write_schema(name: str) -> None:
    """Write the schema of a form to stdout."""
    if name not in FORMS:
        raise UnknownNameError("form", name, FORMS)
    sys.stdout.write(json.dumps(schema_of(name), indent=1) + "\n")


def schema_of(name: str) -> dict[str, Any]:
    """The schema of a file: the form and what the loader resolves; who extends a file may leave keys out."""
    schema = FORMS[name].model_json_schema()
    properties = schema["properties"]
    properties["extends"] = {"type": "string", "description": "a file that this one changes"}
    if name == "scenario":
        patches = {"type": "object", "additionalProperties": {"type": "object"}}
        properties["variants"] = {**patches, "description": "named changes, taken with --variant"}
    required = schema.pop("required", [])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "anyOf": [{"required": ["extends"]}, {"required": required}],
    }
