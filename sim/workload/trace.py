"""A trace as a workload: the rows of a file spread within ticks, overlaid, cut and numbered.

Model: requests arrive when the file says, whatever becomes of earlier ones (open loop). Formats with
calendar time start at their first row, the others at their own zero.
Ignores: that users would send later turns later if answers came later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from sim.base.errors import Advice
from sim.workload.doubts import doubts_on_times
from sim.workload.request import NO_BLOCKS, Arrival, Request
from sim.workload.rows import PS_PER_S, Row
from sim.workload.tracerows import TraceRows

if TYPE_CHECKING:
    from sim.base.streams import Streams

LOOKED_AT = 10_000


@dataclass
class TraceWorkload:
    """The requests of a trace file. `skipped_rows` tells how many rows the latest pass left out."""

    rows: TraceRows
    streams: Streams
    tick_ps: int | None = None
    copies: int = 1
    shared_blocks: int = 1
    limit: int | None = None
    until_ps: int | None = None

    @property
    def block_tokens(self) -> int:
        """Tokens of one hashed block."""
        return self.rows.rules.block_tokens

    @property
    def skipped_rows(self) -> int:
        """Bad rows that the latest pass skipped."""
        return self.rows.skipped_rows

    def __iter__(self) -> Iterator[Request]:
        for number, (at_ps, given, made, blocks) in enumerate(islice(self._arrivals(), self.limit)):
            if self.until_ps is not None and at_ps >= self.until_ps:
                return
            yield Request(number, at_ps, given, made, blocks)

    def _arrivals(self) -> Iterator[Arrival]:
        arrivals = from_start(self.rows)
        if self.tick_ps is not None:
            from sim.workload.ticks import spread  # noqa: PLC0415  needs numpy

            arrivals = spread(arrivals, self.tick_ps, self.streams.stream("workload.tick"))
        if self.copies > 1:
            from sim.workload.copies import overlay  # noqa: PLC0415  needs numpy

            arrivals = overlay(
                arrivals, self.copies, self.shared_blocks, self.streams.stream("workload.scale")
            )
        return arrivals

    def advice(self) -> list[Advice]:
        """Say what looks wrong in the first rows: the unit of the timestamps, coarse ticks."""
        if self.rows.format == "run":
            return []
        return doubts_on_times([row.at_ps for row in islice(self.rows, LOOKED_AT)], self.tick_ps)

    def describe(self) -> str:
        """Say in one line what is replayed."""
        parts = [f"trace {self.rows.source.path.name} ({self.rows.format})"]
        if self.tick_ps is not None:
            parts.append(f"arrivals spread within ticks of {self.tick_ps / PS_PER_S:.6g} s")
        if self.copies > 1:
            parts.append(f"{self.copies} overlaid copies")
        if self.limit is not None:
            parts.append(f"at most {self.limit} requests")
        return ", ".join(parts)


def from_start(rows: Iterable[Row]) -> Iterator[Arrival]:
    """Yield arrivals, moved to zero where sorting brought a row before the first of the file."""
    late_ps: int | None = None
    for row in rows:
        if late_ps is None:
            late_ps = max(0, -row.at_ps)
        yield row.at_ps + late_ps, row.input_tokens, row.output_tokens, row.hash_ids or NO_BLOCKS
