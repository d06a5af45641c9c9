"""Where a curve bends most: the point furthest from the straight line between its ends.

Model: both axes are scaled to run from 0 to 1, so that units do not matter; the distance to the chord is then
measured along the vertical axis. A curve that rises fast and then flattens, or falls fast and then flattens,
has its knee where it is furthest on the early side of the chord. The idea is that of Satopaa et al., "Finding
a Kneedle in a Haystack" (2011), without its smoothing.
Ignores: noise, and that a curve may have several knees. It depends on where the curve begins and ends: a
longer flat part moves the knee outwards.
"""

from __future__ import annotations

from collections.abc import Sequence

LEAST_BEND = 0.1
"""A curve that nowhere leaves its chord by this part of its height is straight: it has no knee."""


def knee(x: Sequence[float], y: Sequence[float]) -> int | None:
    """The position of the knee of a curve over rising x; None where it is straight or bends later."""
    if len(x) < 3 or x[0] == x[-1] or y[0] == y[-1]:
        return None
    gains = [
        (value - y[0]) / (y[-1] - y[0]) - (place - x[0]) / (x[-1] - x[0])
        for place, value in zip(x, y, strict=True)
    ]
    best = max(range(len(gains)), key=lambda i: (gains[i], -i))
    return best if gains[best] >= LEAST_BEND else None
