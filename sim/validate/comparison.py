"""What is compared: one number predicted and measured, and a set of such.

Errors are fractions of what was measured: predicted / measured - 1. The median and the worst are of absolute
errors, by metric: of rows that nothing was fitted to, and of those that something was, apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

METRICS = ("ttft", "tpot", "throughput", "bandwidth", "latency", "ratio")


@dataclass(frozen=True, slots=True)
class Comparison:
    """One number: what was predicted, what was measured, in which unit and by whom.

    `group` says what the row is about, for summaries. `fitted` says that a constant of the model was fitted
    to it.
    """

    id: str
    metric: str
    predicted: float
    measured: float
    unit: str
    group: str
    source: str
    fitted: bool = False

    @property
    def error(self) -> float:
        """By which part of what was measured the prediction is off; above 0 where it is too high."""
        return self.predicted / self.measured - 1


@dataclass(frozen=True, slots=True)
class NotComparable:
    """A row of which there is no prediction, and why."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Errors:
    """Absolute errors of some rows: how many, the middle one, the worst, and which way they lean."""

    count: int
    median_abs: float
    worst_abs: float
    median_signed: float

    @classmethod
    def of(cls, rows: Iterable[Comparison]) -> Errors | None:
        """The errors of some rows; None where there are none."""
        errors = [row.error for row in rows]
        if not errors:
            return None
        sizes = [abs(error) for error in errors]
        return cls(len(errors), median(sizes), max(sizes), median(errors))


@dataclass(frozen=True, slots=True)
class Comparisons:
    """A set: its comparisons, and what could not be compared."""

    name: str
    rows: tuple[Comparison, ...]
    not_comparable: tuple[NotComparable, ...] = field(default=())

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that occur, in the usual order."""
        return tuple(metric for metric in METRICS if any(row.metric == metric for row in self.rows))

    def errors(self, metric: str) -> Errors:
        """The errors of all rows of a metric that occurs."""
        found = Errors.of(row for row in self.rows if row.metric == metric)
        assert found is not None
        return found
