"""Numbers that may not exist: None stands for them in every figure."""

from __future__ import annotations

import math


def finite(value: float) -> float | None:
    """The value, or None for what JSON cannot say."""
    return value if math.isfinite(value) else None


def ratio(part: float, whole: float) -> float | None:
    """Part over whole, None of nothing."""
    return part / whole if whole else None
