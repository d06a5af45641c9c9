"""Where a cable of an explicit fabric ends: at a switch, or at NICs of nodes.

Grammar: `NAME` is a switch. `GROUP/NODES/NICS` are NICs, where NODES counts the nodes of the group and
NICS the NICs of each, both from 0: one number, or a range such as `0-15` that holds both its ends.
`dgx/0-15/0` is the first NIC of the first sixteen nodes of the group dgx: sixteen cables.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

from sim.base.errors import ValueProblem, shown

EXAMPLE = "dgx/0-15/0"
HINT = f"write the name of a switch, or GROUP/NODES/NICS such as {EXAMPLE}"
_NAME = r"[A-Za-z][A-Za-z0-9_-]{0,79}"
_SPAN = r"[0-9]{1,6}(?:-[0-9]{1,6})?"
_END = re.compile(rf"({_NAME})(?:/({_SPAN})/({_SPAN}))?")


@dataclass(frozen=True, slots=True)
class CableEnd:
    """A switch by name, or NICs of nodes of a group; `nodes` and `nics` are None at a switch."""

    name: str
    nodes: range | None = None
    nics: range | None = None

    @property
    def is_switch(self) -> bool:
        """Whether it is a switch."""
        return self.nodes is None

    def __str__(self) -> str:
        parts = [self.name, *(_written(span) for span in (self.nodes, self.nics) if span is not None)]
        return "/".join(parts)


def _written(span: range) -> str:
    return str(span.start) if len(span) == 1 else f"{span.start}-{span.stop - 1}"


def _span(text: str) -> range:
    first, _, last = text.partition("-")
    span = range(int(first), int(last or first) + 1)
    if not span:
        raise ValueProblem(f"the range {text} runs backwards", f"write {last}-{first}")
    return span


def cable_end(value: object) -> CableEnd:
    """Read an end of a cable."""
    if isinstance(value, CableEnd):
        return value
    if not isinstance(value, str):
        raise ValueProblem(f"must be an end of a cable, not {shown(value)}", HINT)
    found = _END.fullmatch(value.strip())
    if found is None:
        raise ValueProblem(f"cannot read {shown(value)} as an end of a cable", HINT)
    name, nodes, nics = found.groups()
    return CableEnd(name) if nodes is None else CableEnd(name, _span(nodes), _span(nics))


End = Annotated[
    CableEnd,
    PlainValidator(cable_end),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "pattern": f"^ *{_END.pattern} *$", "examples": [EXAMPLE, "leaf-0"]}),
]
"""An end of a cable as a user writes it."""
