"""Quantiles, means and shares of values that may come with weights.

Quantiles interpolate linearly between order statistics, as numpy does by default, and give the
same number on (value, weight) pairs as numpy gives on the list in which each value is repeated.
Missing values, such as the latency of a request that never ended, may be counted as infinite.
Ignores: correlation. Requests of one run are not independent, so no interval is given here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SAMPLES_BEYOND = 10
"""A quantile with fewer samples beyond it is marked as weak."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """Sorted values, and for each the number of samples up to and with it."""

    values: Floats
    ranks: NDArray[np.int64]

    @property
    def count(self) -> int:
        """Number of samples."""
        return int(self.ranks[-1]) if len(self.ranks) else 0

    def quantile(self, fraction: float, missing: int = 0) -> float:
        """The value below which a fraction lies, with so many more samples at infinity; NaN of nothing."""
        last = self.count + missing - 1
        if last < 0:
            return math.nan
        position = last * fraction
        rank = math.floor(position)
        part = position - rank
        low = self._at(rank)
        return low if part == 0 else _between(low, self._at(min(rank + 1, last)), part)

    def mean(self, missing: int = 0) -> float:
        """The mean; infinite where something is missing."""
        if missing:
            return math.inf
        if not self.count:
            return math.nan
        weights = np.diff(self.ranks, prepend=0)
        return float(np.dot(self.values, weights)) / self.count

    def highest(self, missing: int = 0) -> float:
        """The largest value."""
        if missing:
            return math.inf
        return float(self.values[-1]) if self.count else math.nan

    def statistic(self, name: str, missing: int = 0) -> float:
        """Any statistic by its name: mean, max, p50, p99.9 and so on."""
        if name == "mean":
            return self.mean(missing)
        if name == "max":
            return self.highest(missing)
        return self.quantile(fraction_of(name), missing)

    def share_up_to(self, limit: float) -> float:
        """The share of samples that are at most a limit."""
        position = int(np.searchsorted(self.values, limit, side="right"))
        below = int(self.ranks[position - 1]) if position else 0
        return below / self.count if self.count else math.nan

    def is_weak(self, name: str) -> bool:
        """Whether too few samples lie beyond a quantile to trust it."""
        return name.startswith("p") and samples_beyond(self.count, name) < SAMPLES_BEYOND

    def _at(self, rank: int) -> float:
        if rank >= self.count:
            return math.inf
        return float(self.values[np.searchsorted(self.ranks, rank, side="right")])


def distribution(values: NDArray[Any], weights: NDArray[np.int64] | None = None) -> Distribution:
    """Values, each as often as its weight says (once without weights); NaN is left out."""
    counts = np.ones(len(values), dtype=np.int64) if weights is None else weights
    is_there = ~np.isnan(values) & (counts > 0)
    kept, counts = values[is_there].astype(np.float64), counts[is_there]
    order = np.argsort(kept, kind="stable")
    return Distribution(kept[order], np.cumsum(counts[order], dtype=np.int64))


def fraction_of(name: str) -> float:
    """The fraction that a quantile's name stands for: 0.999 for p99.9."""
    return float(_exact_fraction(name))


def samples_beyond(count: int, name: str) -> float:
    """How many of so many samples lie beyond a quantile."""
    return float(count * (1 - _exact_fraction(name)))


def _exact_fraction(name: str) -> Decimal:
    return Decimal(name.removeprefix("p")) / 100


def _between(low: float, high: float, part: float) -> float:
    if math.isinf(high):
        return math.inf
    # As numpy: from the nearer end, so that rounding cannot step outside.
    return low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part)
