"""Uncertainty from replications: means over seeds, with intervals by Student's t.

Model: each replication gives one number, and these are independent and near enough to normal. Compared runs
see the same requests at the same seed, so that the difference is taken seed by seed, and what both have in
common goes out of it. Never from the requests of one run, which depend on each other.
Ignores: that several intervals on one screen miss more often together than each alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean, and by how much it may be off on either side; NaN where one number alone is known."""

    mean: float
    half: float

    @property
    def low(self) -> float:
        """The lower end."""
        return self.mean - self.half

    @property
    def high(self) -> float:
        """The upper end."""
        return self.mean + self.half

    @property
    def is_apart_from_zero(self) -> bool:
        """Whether zero lies outside; False where nothing is known of the uncertainty."""
        return abs(self.mean) > self.half


def interval(values: Sequence[float], level: float = LEVEL) -> Interval:
    """The mean of replications, and the interval in which the true mean lies with some confidence."""
    count = len(values)
    if not count:
        return Interval(math.nan, math.nan)
    mean = math.fsum(values) / count
    if count == 1:
        return Interval(mean, math.nan)
    from scipy.stats import t  # noqa: PLC0415 - slow to import

    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    return Interval(mean, float(t.ppf((1 + level) / 2, count - 1)) * math.sqrt(variance / count))


def paired(before: Sequence[float], after: Sequence[float], level: float = LEVEL) -> Interval:
    """The mean difference of replications that belong together, after less before."""
    return interval([new - old for old, new in zip(before, after, strict=True)], level)
