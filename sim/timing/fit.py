"""How far times that were compiled to coefficients lie from those that they were made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class FitError:
    """Relative errors over some points, as fractions; NaN-free: `points` is 0 where there are none."""

    points: int
    median: float
    worst: float

    @classmethod
    def of(cls, pairs: Iterable[tuple[float, float]]) -> FitError:
        """Compare pairs of (told, measured)."""
        errors = [abs(told / measured - 1) for told, measured in pairs]
        return cls(len(errors), median(errors), max(errors)) if errors else cls(0, 0.0, 0.0)


def line(points: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """Intercept and slope of the line with the least relative squares through at least two points.

    The slope is never negative: more work that takes less time is noise.
    """
    s = sx = sxx = sy = sxy = 0.0
    for x, y in points:
        weight = 1 / (y * y)
        s, sx, sxx = s + weight, sx + weight * x, sxx + weight * x * x
        sy, sxy = sy + weight * y, sxy + weight * x * y
    slope = max(0.0, (s * sxy - sx * sy) / (s * sxx - sx * sx))
    return (sy - slope * sx) / s, slope
