"""Where the replicas of a pool go: `packed`, `spread`, `per-domain 5:4`, or `nodes 0-99,120`.

Model: a domain is what shares NVLink (a node, or a rack of them). `packed` fills one domain after the other;
`spread` takes domains evenly over those with room; `per-domain P:D` gives P places of every domain to prefill
and D to decode, whichever pool this is; `nodes` lists nodes by number, filled in that order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pydantic import GetJsonSchemaHandler
from pydantic_core import CoreSchema

from sim.base.errors import ValueProblem, did_you_mean
from sim.config.written import Written

KINDS = ("packed", "spread", "per-domain", "nodes")
EXAMPLES = ("packed", "spread", "per-domain 5:4", "nodes 0-99,120")
RATIO = re.compile(r"([0-9]+) *: *([0-9]+)")
RUN = re.compile(r"([0-9]+)(?: *- *([0-9]+))?")


@dataclass(frozen=True, slots=True)
class Place(Written):
    """A rule of placement; `prefill` and `decode` are places in a domain, `nodes` runs of numbers."""

    kind: str
    prefill: int = 0
    decode: int = 0
    nodes: tuple[tuple[int, int], ...] = ()

    def __str__(self) -> str:
        if self.kind == "per-domain":
            return f"per-domain {self.prefill}:{self.decode}"
        if self.kind == "nodes":
            runs = [str(first) if first == last else f"{first}-{last}" for first, last in self.nodes]
            return f"nodes {','.join(runs)}"
        return self.kind

    @classmethod
    def parse(cls, text: object) -> Place:
        """The rule that a text states."""
        if isinstance(text, Place):
            return text
        kind, _, rest = text.strip().partition(" ") if isinstance(text, str) else ("", "", "")
        if kind not in KINDS:
            hint = did_you_mean(kind, KINDS) if kind else f"write one of {', '.join(EXAMPLES)}"
            raise ValueProblem(f"unknown placement {text!r}", hint)
        if kind == "per-domain":
            return cls(kind, *_ratio(rest.strip(), str(text)))
        if kind == "nodes":
            return cls(kind, nodes=tuple(_run(part.strip(), str(text)) for part in rest.split(",")))
        if rest.strip():
            raise ValueProblem(f"'{kind}' takes nothing more, and here is '{rest.strip()}'", f"write {kind}")
        return cls(kind)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """What an editor should know."""
        run = "[0-9]+( *- *[0-9]+)?"
        pattern = rf"^(packed|spread|per-domain +[0-9]+ *: *[0-9]+|nodes +{run}( *, *{run})*)$"
        return {"type": "string", "pattern": pattern, "examples": list(EXAMPLES)}


def _ratio(text: str, whole: str) -> tuple[int, int]:
    found = RATIO.fullmatch(text)
    if found is None or not any(int(part) for part in found.groups()):
        raise ValueProblem(f"cannot read '{whole}': per-domain needs P:D", "write it as per-domain 5:4")
    return int(found[1]), int(found[2])


def _run(text: str, whole: str) -> tuple[int, int]:
    found = RUN.fullmatch(text)
    if found is None:
        raise ValueProblem(f"cannot read '{whole}': nodes needs numbers", "write it as nodes 0-99,120")
    first, last = int(found[1]), int(found[2] or found[1])
    if last < first:
        raise ValueProblem(f"'{text}' runs backwards", f"write {last}-{first}")
    return first, last
