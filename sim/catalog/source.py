"""A text, data set or measurement in which values of the catalogue were read."""

from __future__ import annotations

from dataclasses import dataclass

from sim.catalog.entry import Entry
from sim.catalog.fields import Fields


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Source(Entry):
    """A source; `url` is empty where the address was not kept or there is none."""

    url: str
    date: str
    kind: str

    @classmethod
    def read(cls, fields: Fields) -> Source:
        """Read an entry of sources.yaml; all of it is plain text."""
        return cls(
            **fields.identity(),
            url=fields.label("url"),
            date=fields.label("date"),
            kind=fields.label("kind"),
        )

    @property
    def summary(self) -> str:
        """Title, date and address."""
        return ", ".join(part for part in (self.title, self.date, self.url) if part)
