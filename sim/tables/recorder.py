"""The Recorder: where a simulation writes its rows, and the sinks that the rows go to.

Rows are tuples of integers in the order of sim.tables.schema. They are handed on in chunks, so
that a long run does not grow: the sink decides whether a chunk stays in memory or goes to a file.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sim.tables.schema import REQUEST_COLUMNS, SAMPLE_COLUMNS, SEGMENT_COLUMNS
from sim.tables.uses import LinkUse

Integers = NDArray[np.int64]
CHUNK_ROWS = 16_384


class Sink(Protocol):
    """Takes chunks of rows as they come."""

    def requests(self, columns: dict[str, Integers], blocks: Sequence[Sequence[int]]) -> None:
        """Take finished requests: REQUEST_COLUMNS, and the block ids of their prompts."""

    def segments(self, columns: dict[str, Integers]) -> None:
        """Take decode segments: SEGMENT_COLUMNS."""

    def samples(self, rows: list[tuple[int, str, str, str, float]]) -> None:
        """Take samples: SAMPLE_COLUMNS."""

    def links(self, uses: Sequence[LinkUse]) -> None:
        """Take what the links did, once, at the end."""


@dataclass
class MemorySink:
    """Keeps everything: for tests, notebooks and runs that fit."""

    request_chunks: list[dict[str, Integers]] = field(default_factory=list)
    segment_chunks: list[dict[str, Integers]] = field(default_factory=list)
    block_rows: list[Sequence[int]] = field(default_factory=list)
    sample_rows: list[tuple[int, str, str, str, float]] = field(default_factory=list)
    link_rows: list[LinkUse] = field(default_factory=list)

    def requests(self, columns: dict[str, Integers], blocks: Sequence[Sequence[int]]) -> None:
        """Keep a chunk of requests."""
        self.request_chunks.append(columns)
        self.block_rows.extend(blocks)

    def segments(self, columns: dict[str, Integers]) -> None:
        """Keep a chunk of segments."""
        self.segment_chunks.append(columns)

    def samples(self, rows: list[tuple[int, str, str, str, float]]) -> None:
        """Keep samples."""
        self.sample_rows.extend(rows)

    def links(self, uses: Sequence[LinkUse]) -> None:
        """Keep what the links did."""
        self.link_rows.extend(uses)

    def request_table(self) -> dict[str, Integers]:
        """All requests, by column."""
        return joined(self.request_chunks, REQUEST_COLUMNS)

    def segment_table(self) -> dict[str, Integers]:
        """All segments, by column."""
        return joined(self.segment_chunks, SEGMENT_COLUMNS)


class Recorder:
    """Append-only. Integers go one after the other into flat arrays, a row at a time.

    `segment` records a decode segment: a row of SEGMENT_COLUMNS.
    """

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self._requests = array("q")
        self._blocks: list[Sequence[int]] = []
        self._segments = array("q")
        self.segment: Callable[[tuple[int, ...]], None] = self._segments.extend
        self._samples: list[tuple[int, str, str, str, float]] = []

    def request(self, row: tuple[int, ...], blocks: Sequence[int]) -> None:
        """Record a request that has come to its end: a row of REQUEST_COLUMNS and its block ids."""
        self._requests.extend(row)
        self._blocks.append(blocks)
        if len(self._blocks) >= CHUNK_ROWS:
            self.flush()

    def sample(self, at_ps: int, kind: str, name: str, metric: str, value: float) -> None:
        """Record one reading."""
        self._samples.append((at_ps, kind, name, metric, value))

    def flush(self) -> None:
        """Hand everything recorded so far to the sink."""
        if self._blocks:
            self.sink.requests(columns_of(self._requests, REQUEST_COLUMNS), self._blocks)
        if self._segments:
            self.sink.segments(columns_of(self._segments, SEGMENT_COLUMNS))
        if self._samples:
            self.sink.samples(self._samples)
        self._blocks, self._samples = [], []
        del self._requests[:], self._segments[:]


def columns_of(values: array[int], names: Sequence[str]) -> dict[str, Integers]:
    """Rows of integers, one after the other, as one array per column."""
    table = np.frombuffer(values, dtype=np.int64).reshape(-1, len(names))
    return {name: table[:, i].copy() for i, name in enumerate(names)}


def joined(chunks: list[dict[str, Integers]], names: Sequence[str]) -> dict[str, Integers]:
    """Chunks one after the other; empty columns where there is none."""
    empty = np.empty(0, dtype=np.int64)
    return {name: np.concatenate([chunk[name] for chunk in chunks] or [empty]) for name in names}


__all__ = [
    "CHUNK_ROWS",
    "SAMPLE_COLUMNS",
    "Integers",
    "MemorySink",
    "Recorder",
    "Sink",
    "columns_of",
    "joined",
]
