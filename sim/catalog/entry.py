"""One entry of the catalogue, and one value in it with its provenance.

An entry has a name, a title and leaves. A leaf is a value as it is written (`180 GiB`) with the source that
it was read in and how it was verified; the typed fields of an entry are computed from its leaves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

VERIFIED: Mapping[str, str] = {
    "primary": "read in the vendor's or author's own text or data",
    "secondary": "read in somebody else's text",
    "memory": "not read; check before relying on it",
    "measured": "measured by this project",
    "assumption": "assumed, for the reason in the note",
}


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value as written, where it comes from, and what is to be known about it.

    `derived` says how the value follows from what the source prints, `note` warns of traps.
    """

    value: str | tuple[str, ...]
    source: str
    verified: str
    derived: str | None = None
    note: str | None = None
    line: int = 0

    @property
    def text(self) -> str:
        """The value as one line."""
        return self.value if isinstance(self.value, str) else ", ".join(self.value)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Entry:
    """What all entries share. `provenance` holds each leaf by its dotted path, such as `dense.fp8`."""

    name: str
    title: str
    predecessor: str | None = None
    provenance: Mapping[str, Leaf] = field(repr=False)

    @property
    def summary(self) -> str:
        """One line for a list of entries."""
        return self.title
