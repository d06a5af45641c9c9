"""Costs that rise in straight pieces: what a roofline is once its shapes are known.

A curve gives a cost for a number of tokens from 0 up. Curves add up, so a whole layer becomes one curve,
which costs one bisection to evaluate. A larger argument never gives a smaller value, also after rounding.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import inf

Line = tuple[float, float]
"""Intercept and slope."""


class Curve:
    """A rising piecewise linear function: `starts[i]` is where piece i begins, at `values[i]`."""

    __slots__ = ("slopes", "starts", "values")

    def __init__(self, starts: Sequence[float], values: Sequence[float], slopes: Sequence[float]) -> None:
        self.starts, self.values, self.slopes = list(starts), list(values), list(slopes)

    def __call__(self, x: float) -> float:
        """Return the cost at x >= 0."""
        piece = bisect_right(self.starts, x) - 1
        value = self.values[piece] + self.slopes[piece] * (x - self.starts[piece])
        # Rounding may lift the end of a piece above the start of the next one.
        if piece + 1 < len(self.values) and value > self.values[piece + 1]:
            return self.values[piece + 1]
        return value

    def __add__(self, other: Curve) -> Curve:
        return Curve.sampled(lambda x: self(x) + other(x), [*self.starts, *other.starts], self._last(other))

    def times(self, factor: float) -> Curve:
        """Return the cost `factor` times over."""
        return Curve(self.starts, [factor * v for v in self.values], [factor * s for s in self.slopes])

    def of_scaled(self, factor: float) -> Curve:
        """Return the curve of x for which this one is of `factor` * x, such as bytes for tokens."""
        return Curve(
            [start / factor for start in self.starts], self.values, [factor * s for s in self.slopes]
        )

    def highest(self, other: Curve) -> Curve:
        """Return the higher one at every point."""
        bends = sorted({*self.starts, *other.starts})
        crossings = []
        for start, end in pairwise([*bends, inf]):
            gap, closing = self(start) - other(start), other._slope(start) - self._slope(start)
            if closing and 0.0 < gap / closing < end - start:
                crossings.append(start + gap / closing)
        last = max(self.slopes[-1], other.slopes[-1])
        return Curve.sampled(lambda x: max(self(x), other(x)), [*bends, *crossings], last)

    def _slope(self, x: float) -> float:
        return self.slopes[bisect_right(self.starts, x) - 1]

    @classmethod
    def roof(cls, *lines: Line) -> Curve:
        """Return the highest of some lines at every point."""
        crossings = [
            (first[0] - second[0]) / (second[1] - first[1])
            for index, first in enumerate(lines)
            for second in lines[index + 1 :]
            if first[1] != second[1]
        ]
        last = max(slope for _, slope in lines)
        return cls.sampled(lambda x: max(a + b * x for a, b in lines), [x for x in crossings if x > 0], last)

    @classmethod
    def through(cls, points: Sequence[tuple[float, float]]) -> Curve:
        """Return the line through measured points, flat before the first and straight on after the last."""
        (x1, y1), (x2, y2) = points[-2:]
        steps = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(points)]
        return cls(
            [0.0, *[x for x, _ in points]],
            [points[0][1], *[y for _, y in points]],
            [0.0, *steps, (y2 - y1) / (x2 - x1)],
        )

    @classmethod
    def sampled(cls, cost: Callable[[float], float], bends: Sequence[float], last_slope: float) -> Curve:
        """Return the curve that bends at the given places only, of which the cost there is known."""
        starts = sorted({0.0, *bends})
        values = [cost(start) for start in starts]
        slopes = [
            (v2 - v1) / (x2 - x1)
            for (x1, x2), (v1, v2) in zip(pairwise(starts), pairwise(values), strict=True)
        ]
        return cls(starts, values, [*slopes, last_slope])

    def _last(self, other: Curve) -> float:
        return self.slopes[-1] + other.slopes[-1]
