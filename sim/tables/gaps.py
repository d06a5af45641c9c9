"""Every gap between consecutive tokens of measured requests, counted without listing tokens.

Model: step k of a segment lasts `first_step + k * growth` and gives each measured sequence of the batch
one gap of that length, except that in step 0 the sequences that just joined have their gap elsewhere:
it reaches back to the token that prefill emitted, and is recorded with the request (`second - first`).
Picoseconds throughout. Ignores: which request a gap belongs to.
"""

from __future__ import annotations

import numpy as np

from sim.tables.recorder import Integers

_KEPT = ("steps", "first_step_ps", "step_growth_ps", "measured", "joined")


class TokenGaps:
    """Collects segments and first gaps; `counted()` gives lengths and how often each came."""

    def __init__(self) -> None:
        self._segments: list[dict[str, Integers]] = []
        self._first_gaps: list[Integers] = []

    def add_segments(self, columns: dict[str, Integers]) -> None:
        """Take a chunk of segments; only those with measured sequences are kept."""
        is_measured = columns["measured"] > 0
        self._segments.append({name: columns[name][is_measured] for name in _KEPT})

    def add_requests(self, columns: dict[str, Integers]) -> None:
        """Take a chunk of requests for their gap from the first token to the second."""
        has_second = (
            (columns["measured"] > 0) & (columns["first_token_ps"] >= 0) & (columns["second_token_ps"] >= 0)
        )
        self._first_gaps.append((columns["second_token_ps"] - columns["first_token_ps"])[has_second])

    def counted(self) -> tuple[Integers, Integers]:
        """Gap lengths in picoseconds, and the number of gaps of each; lengths may repeat."""
        none = np.empty(0, dtype=np.int64)
        expanded = [expand(segments) for segments in self._segments]
        first_gaps = np.concatenate([none, *self._first_gaps])
        lengths = np.concatenate([*(lengths for lengths, _ in expanded), first_gaps])
        counts = np.concatenate([*(counts for _, counts in expanded), np.ones_like(first_gaps)])
        return lengths[counts > 0], counts[counts > 0]


def expand(segments: dict[str, Integers]) -> tuple[Integers, Integers]:
    """Length and number of gaps of each step; a segment of equal steps is one entry."""
    is_even = segments["step_growth_ps"] == 0
    even = {name: column[is_even] for name, column in segments.items()}
    grown = {name: column[~is_even] for name, column in segments.items()}
    lengths, counts = _steps(grown)
    even_counts = even["measured"] * even["steps"] - even["joined"]
    return np.concatenate([even["first_step_ps"], lengths]), np.concatenate([even_counts, counts])


def _steps(segments: dict[str, Integers]) -> tuple[Integers, Integers]:
    steps = segments["steps"]
    begins = np.cumsum(steps) - steps
    step = np.arange(steps.sum(), dtype=np.int64) - np.repeat(begins, steps)
    lengths = np.repeat(segments["first_step_ps"], steps) + step * np.repeat(
        segments["step_growth_ps"], steps
    )
    counts = np.repeat(segments["measured"], steps)
    counts[begins[steps > 0]] -= segments["joined"][steps > 0]
    return lengths, counts
