"""`sim schema`: the JSON schema of what a user may write, for completion in an editor."""

from __future__ import annotations

import json
import sys
from typing import cast

from sim.base.errors import UnknownNameError
from sim.config import jsonschema


def write_schema(kind: str) -> None:
    """Write the schema of a kind of file to stdout."""
    if kind not in jsonschema.FORMS:
        raise UnknownNameError("form", kind, jsonschema.FORMS)
    sys.stdout.write(schema_text(cast("jsonschema.Kind", kind)))


def schema_text(kind: jsonschema.Kind) -> str:
    """The schema as it is committed under schemas/."""
    return json.dumps(jsonschema.schema(kind), indent=1, ensure_ascii=False) + "\n"
