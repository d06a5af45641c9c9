"""What was asked of a measured table that it does not hold: counted while a simulation runs, then told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sim.base.errors import Advice

Columns = dict[str, NDArray[np.int64]]
CARRIES_ON = "the roofline carries on there, scaled to meet the table"


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest that a table has: sequences of a step, tokens of a sequence, new and cached tokens."""

    batch: int
    context: int
    new: int
    cached: int


@dataclass(slots=True)
class Share:
    """How many of some things were outside, and the largest of all."""

    all: int = 0
    outside: int = 0
    largest: int = 0

    def add(self, values: NDArray[np.int64], counts: NDArray[np.int64], most: int) -> None:
        """Count values, each so many times."""
        if len(values):
            self.all += int(counts.sum())
            self.outside += int(counts[values > most].sum())
            self.largest = max(self.largest, int(values.max()))

    def __str__(self) -> str:
        return f"{self.outside:,} of {self.all:,}"


@dataclass(slots=True)
class Beyond:
    """Counts what lies outside the limits of a table."""

    source: str
    limits: Limits
    prefills: Share = field(default_factory=Share)
    steps: Share = field(default_factory=Share)
    sequences: Share = field(default_factory=Share)

    def see_requests(self, columns: Columns) -> None:
        """Look at the lengths of requests."""
        tokens = columns["input_tokens"] + columns["output_tokens"]
        self.sequences.add(tokens, np.ones_like(tokens), self.limits.context)

    def see_segments(self, columns: Columns) -> None:
        """Look at the batches of decode steps."""
        self.steps.add(columns["batch"], columns["steps"], self.limits.batch)

    def doubts(self) -> Iterator[Advice]:
        """What was outside, the gravest first."""
        most = self.limits
        if self.prefills.outside:
            yield Advice(
                f"{self.prefills} prefills lie outside the measured table {self.source} "
                f"(to {most.new:,} new and {most.cached:,} cached tokens): {CARRIES_ON}",
                "measure with `sim calibrate` what is missing, or compare with --set timing=null",
            )
        if self.steps.outside:
            yield Advice(
                f"{self.steps} decode steps had more sequences than the measured table {self.source} "
                f"(up to {self.steps.largest:,}, it has {most.batch:,}): {CARRIES_ON}",
                "lower max_sequences of the decode pool, or measure larger batches with `sim calibrate`",
            )
        if self.sequences.outside:
            yield Advice(
                f"{self.sequences} sequences grew longer than any of the measured table {self.source} "
                f"(to {self.sequences.largest:,} tokens, it has {most.context:,}): {CARRIES_ON}",
                "measure longer contexts with `sim calibrate`, or compare with --set timing=null",
            )
