"""What a trace holds, counted in one pass: instants, lengths, reuse of blocks, rows that cannot be used.

A block counts as reused where its id came in any earlier request, or earlier in the same one; it says what a
cache without limit could find. Memory grows by 24 bytes a request and by the number of different blocks.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sim.results.stats import distribution
from sim.tables.schema import PS_PER_S
from sim.workload.rows import BadRow, Row

STATISTICS: tuple[str, ...] = ("mean", "p50", "p90", "p99", "max")


@dataclass
class TraceStats:
    """Counts of a trace."""

    at_ps: array[int] = field(default_factory=lambda: array("q"))
    input_tokens: array[int] = field(default_factory=lambda: array("q"))
    output_tokens: array[int] = field(default_factory=lambda: array("q"))
    blocks: int = 0
    reused_blocks: int = 0
    latest_ps: int = 0
    worst_lateness_ps: int = 0
    bad_rows: int = 0
    first_bad: BadRow | None = None
    extra: Counter[str] = field(default_factory=Counter)
    _seen: set[int] = field(default_factory=set)

    def count(self, rows: Iterable[Row | BadRow]) -> TraceStats:
        """Count rows."""
        for row in rows:
            if isinstance(row, BadRow):
                self.bad_rows += 1
                self.first_bad = self.first_bad or row
            else:
                self._count(row)
        return self

    def _count(self, row: Row) -> None:
        self.at_ps.append(row.at_ps)
        self.input_tokens.append(row.input_tokens)
        self.output_tokens.append(row.output_tokens)
        self.latest_ps = max(self.latest_ps, row.at_ps)
        self.worst_lateness_ps = max(self.worst_lateness_ps, self.latest_ps - row.at_ps)
        self.extra.update(row.extra)
        for block in row.hash_ids or ():
            self.blocks += 1
            if block in self._seen:
                self.reused_blocks += 1
            else:
                self._seen.add(block)

    def figures(self) -> dict[str, Any]:
        """All counts, for machines."""
        span_s = (max(self.at_ps) - min(self.at_ps)) / PS_PER_S if self.at_ps else 0.0
        return {
            "requests": len(self.at_ps),
            "bad_rows": self.bad_rows,
            "span_s": span_s,
            "requests_per_s": len(self.at_ps) / span_s if span_s else None,
            "input_tokens": _lengths(self.input_tokens),
            "output_tokens": _lengths(self.output_tokens),
            "blocks": self.blocks,
            "reused_fraction": self.reused_blocks / self.blocks if self.blocks else None,
            "worst_lateness_s": self.worst_lateness_ps / PS_PER_S,
            "extra": sorted(self.extra),
        }


def _lengths(tokens: array[int]) -> dict[str, float | None]:
    lengths = distribution(np.array(tokens, dtype=np.float64))
    return {name: lengths.statistic(name) if lengths.count else None for name in STATISTICS}
