"""What is in a trace: how many requests, when, how long, how much of them seen before, what looks wrong.

One pass over the file; lengths (8 bytes a row) and the set of block ids are held in memory. Percentiles by
linear interpolation. "Seen before" and "token hit" assume one unlimited cache: a block is seen before if
an earlier request had it; hit tokens are those of the leading run of seen blocks.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sim.base.errors import Advice
from sim.workload.doubts import doubts_on_times, tick_of
from sim.workload.library import KnownTrace, find_trace, known_as, raw_sha256
from sim.workload.readers import guess_format
from sim.workload.rows import PS_PER_S, BadRow, Row
from sim.workload.source import TraceFile
from sim.workload.tracerows import ReadRules, TraceRows

PERCENTILES = (50, 90, 99)
LOOKED_AT = 10_000
MINUTE_PS = 60 * PS_PER_S


@dataclass(frozen=True, slots=True)
class LengthStats:
    """Token counts: mean, percentiles and largest."""

    mean: float
    p50: float
    p90: float
    p99: float
    max: int


@dataclass(frozen=True, slots=True)
class ReuseStats:
    """Prefix reuse in an unlimited cache."""

    block_tokens: int
    blocks: int
    distinct_blocks: int
    seen_before_fraction: float
    token_hit_fraction: float


@dataclass(frozen=True, slots=True)
class TraceInfo:
    """What is in a trace; None stands where a figure means nothing, such as rates of a single instant."""

    path: Path
    format: str
    rows: int
    skipped_rows: int
    bad_rows: tuple[BadRow, ...]
    extra_keys: tuple[str, ...]
    span_s: float
    mean_rate_per_s: float | None
    peak_minute_rate_per_s: float | None
    gap_cv: float | None
    tick_ps: int | None
    input_tokens: LengthStats
    output_tokens: LengthStats
    reuse: ReuseStats | None
    sha256: str | None
    known: KnownTrace | None
    advice: tuple[Advice, ...]

    @property
    def is_verified(self) -> bool | None:
        """Whether the raw bytes are those of the public trace of this name; None for an unknown trace."""
        return self.sha256 == self.known.sha256 if self.known else None


def trace_info(wanted: str, format: str = "auto", rules: ReadRules | None = None) -> TraceInfo:
    """Read a trace, given by path or name, and say what is in it; bad rows are counted.

    Only a trace without any usable row raises TraceError.
    """
    source = TraceFile(find_trace(wanted))
    kind = guess_format(source) if format == "auto" else format
    rows = TraceRows(source, kind, replace(rules or ReadRules(), skip_bad_rows=True))
    tally = _Tally(rows.rules.block_tokens)
    for row in rows:
        tally.add(row)
    is_file = source.path.is_file()
    rate, peak = tally.rates()
    return TraceInfo(
        path=source.path,
        format=kind,
        rows=len(tally.input_tokens),
        skipped_rows=rows.skipped_rows,
        bad_rows=tuple(rows.bad_rows),
        extra_keys=tuple(tally.extra_keys),
        span_s=tally.span_s,
        mean_rate_per_s=rate,
        peak_minute_rate_per_s=peak,
        gap_cv=tally.gap_cv(),
        tick_ps=tick_of(tally.first_ps),
        input_tokens=_lengths(tally.input_tokens),
        output_tokens=_lengths(tally.output_tokens),
        reuse=tally.reuse(),
        sha256=raw_sha256(source.path) if is_file else None,
        known=known_as(source.path) if is_file else None,
        advice=() if kind == "run" else tuple(doubts_on_times(tally.first_ps)),
    )


class _Tally:
    """Counts over the rows of a trace, in order of arrival."""

    def __init__(self, block_tokens: int) -> None:
        self._block_tokens = block_tokens
        self.input_tokens = array("q")
        self.output_tokens = array("q")
        self.extra_keys: dict[str, None] = {}
        self.first_ps: list[int] = []
        self._minutes: Counter[int] = Counter()
        self._began_ps = self._last_ps = 0
        self._gap_squares_s2 = 0.0
        self._seen: set[int] = set()
        self._blocks = self._seen_blocks = self._hit_tokens = 0

    def add(self, row: Row) -> None:
        """Count a row."""
        if not self.input_tokens:
            self._began_ps = self._last_ps = row.at_ps
        if len(self.first_ps) < LOOKED_AT:
            self.first_ps.append(row.at_ps)
        self._gap_squares_s2 += ((row.at_ps - self._last_ps) / PS_PER_S) ** 2
        self._minutes[(row.at_ps - self._began_ps) // MINUTE_PS] += 1
        self._last_ps = row.at_ps
        self.input_tokens.append(row.input_tokens)
        self.output_tokens.append(row.output_tokens)
        self.extra_keys.update(dict.fromkeys(row.extra))
        if row.hash_ids is not None:
            self._add_blocks(row, row.hash_ids)

    def _add_blocks(self, row: Row, ids: Sequence[int]) -> None:
        known = [block in self._seen for block in ids]
        lead = known.index(False) if False in known else len(known)
        self._blocks += len(ids)
        self._seen_blocks += sum(known)
        self._hit_tokens += min(lead * self._block_tokens, row.input_tokens)
        self._seen.update(ids)

    @property
    def span_s(self) -> float:
        """Time from the first to the last arrival."""
        return (self._last_ps - self._began_ps) / PS_PER_S

    def rates(self) -> tuple[float | None, float | None]:
        """Return requests per second over the span, and in the busiest minute counted from the first."""
        if self.span_s == 0:
            return None, None
        return len(self.input_tokens) / self.span_s, max(self._minutes.values()) / min(60.0, self.span_s)

    def gap_cv(self) -> float | None:
        """Return the coefficient of variation of the gaps between arrivals."""
        gaps = len(self.input_tokens) - 1
        if gaps < 2 or self.span_s == 0:
            return None
        mean_s = self.span_s / gaps
        return math.sqrt(max(0.0, self._gap_squares_s2 / gaps - mean_s**2)) / mean_s

    def reuse(self) -> ReuseStats | None:
        """Return prefix reuse, or None where no row has block ids."""
        if not self._blocks:
            return None
        hit = self._hit_tokens / sum(self.input_tokens)
        seen = self._seen_blocks / self._blocks
        return ReuseStats(self._block_tokens, self._blocks, len(self._seen), seen, hit)


def _lengths(tokens: array[int]) -> LengthStats:
    import numpy as np  # noqa: PLC0415  slow to import

    counts = np.frombuffer(tokens, dtype=np.int64)
    p50, p90, p99 = (float(each) for each in np.percentile(counts, PERCENTILES))
    return LengthStats(float(counts.mean()), p50, p90, p99, int(counts.max()))
