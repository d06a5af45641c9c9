"""A sink that lets somebody look at the rows on their way: for doubts that only the whole run can tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sim.tables.recorder import Integers, Sink
from sim.tables.uses import LinkUse


class Onlooker(Protocol):
    """Sees chunks of columns; must not change them."""

    def see_requests(self, columns: dict[str, Integers]) -> None:
        """Look at requests that have come to their end: REQUEST_COLUMNS."""

    def see_segments(self, columns: dict[str, Integers]) -> None:
        """Look at decode segments: SEGMENT_COLUMNS."""


class Watched:
    """Hands everything on to a sink, and shows requests and segments to an onlooker."""

    def __init__(self, sink: Sink, onlooker: Onlooker) -> None:
        self.sink, self.onlooker = sink, onlooker

    def requests(self, columns: dict[str, Integers], blocks: Sequence[Sequence[int]]) -> None:
        """Take finished requests."""
        self.onlooker.see_requests(columns)
        self.sink.requests(columns, blocks)

    def segments(self, columns: dict[str, Integers]) -> None:
        """Take decode segments."""
        self.onlooker.see_segments(columns)
        self.sink.segments(columns)

    def samples(self, rows: list[tuple[int, str, str, str, float]]) -> None:
        """Take samples."""
        self.sink.samples(rows)

    def links(self, uses: Sequence[LinkUse]) -> None:
        """Take what the links did."""
        self.sink.links(uses)
