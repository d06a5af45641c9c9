"""Decode steps from a table of measured ones, by batch and tokens of context.

Model: `step_ps` interpolates linearly, along the context of each measured batch and between batches at the
same context of each sequence, and equals the table at its points. `table` is what a simulation steps through:
for each measured batch the line with the least relative squares through its points, and lines between them
for the batches between; a batch that an engine pads has the intercept of the padded one. Sequences of unequal
length cost more, since work is dealt out unevenly: in a simulation the time per token of context is raised
for batches of two and more, where the table has ragged steps: by one factor that is fitted to them, or, in
small batches, by what the longest sequence takes alone, if that is more (see `longest_factor`). Outside the
table another provider carries on, scaled to meet it at its edge: base and time per token each by its own
factor, so that they meet at any context. In context both are lines, so that the fitted one goes on.
Units: picoseconds; context is the sum over the sequences. Ignores: how uneven the lengths of a batch are.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import sqrt

from sim.config.device import DecodeStep, RaggedStep
from sim.timing.fit import FitError, line
from sim.timing.timing import DecodeTable

Point = tuple[float, float]


class DecodeSteps:
    """Steps measured at some batches; `beyond` is the provider outside of them."""

    def __init__(
        self,
        rows: Sequence[DecodeStep],
        beyond: Callable[[int], DecodeTable],
        ragged: Sequence[RaggedStep] = (),
    ) -> None:
        by_batch: dict[int, list[Point]] = {}
        for row in rows:
            by_batch.setdefault(row.batch, []).append((row.batch * row.context, row.median_ps))
        self.batches = sorted(by_batch)
        self.points = {batch: sorted(by_batch[batch]) for batch in self.batches}
        self.longest_context = max(row.context for row in rows)
        self._beyond = beyond
        roof = beyond(self.batches[-1])
        self._lines = {batch: _line(points, roof, batch) for batch, points in self.points.items()}
        self._ragged = [
            (len(row.contexts), sum(row.contexts), row.median_ps)
            for row in ragged
            if 1 < len(row.contexts) <= self.batches[-1]
        ]
        self.unevenness = self._fitted_unevenness()

    @property
    def error(self) -> FitError:
        """How far the lines lie from the points, which are of sequences of equal length."""
        return FitError.of(
            (base + slope * tokens, time)
            for batch, (base, slope) in self._lines.items()
            for tokens, time in self.points[batch]
        )

    @property
    def ragged_error(self) -> FitError:
        """How far the simulated steps lie from the ragged ones, to which one factor was fitted."""
        return FitError.of(
            (sum(self._parts(batch, tokens, self.unevenness)), time) for batch, tokens, time in self._ragged
        )

    def step_ps(self, batch: int, tokens: int) -> float:
        """Interpolate one step; outside the table, carry on as the other provider does."""
        first, last = self.batches[0], self.batches[-1]
        if not first <= batch <= last:
            edge = min(max(batch, first), last)
            edge_tokens = round(tokens * edge / batch)
            roof = self._beyond(max(batch, last))
            return self.step_ps(edge, edge_tokens) * (
                roof.step_ps(batch, tokens) / roof.step_ps(edge, edge_tokens)
            )
        high = self.batches[bisect_left(self.batches, batch)]
        if high == batch:
            return self._along(batch, tokens)
        low = self.batches[bisect_left(self.batches, batch) - 1]
        share = (batch - low) / (high - low)
        each = tokens / batch
        return (1 - share) * self._along(low, each * low) + share * self._along(high, each * high)

    def table(self, max_batch: int, padded: Callable[[int], int]) -> DecodeTable:
        """Coefficients of steps of 1 to `max_batch` sequences, without what a host adds."""
        roof = self._beyond(max(max_batch, self.batches[-1]))
        base, per_token = [0], [0]
        for batch in range(1, max_batch + 1):
            base.append(max(1, round(self._coefficient(0, padded(batch), batch, roof.base_ps))))
            slope = self._coefficient(1, batch, batch, roof.per_token_ps)
            per_token.append(round(slope * self.unevenness_of(batch)))
        return DecodeTable(base, per_token)

    def uneven_ps(self, batch: int, tokens: int) -> float:
        """What a step costs more because its sequences are of unequal length."""
        roof = self._beyond(max(batch, self.batches[-1]))
        slope = self._coefficient(1, batch, batch, roof.per_token_ps)
        return (self.unevenness_of(batch) - 1) * slope * tokens

    def unevenness_of(self, batch: int) -> float:
        """By which factor a token of context takes longer in a batch of unequal sequences."""
        if batch == 1:
            return 1.0
        alone, among = self._lines[self.batches[0]][1], self._lines[self.batches[-1]][1]
        if not self._ragged or self.batches[0] > 1 or not among:
            return self.unevenness
        return max(self.unevenness, longest_factor(batch, alone / among))

    def _parts(self, batch: int, tokens: int, factor: float) -> Point:
        """Base and context of a step inside the table."""
        roof = self._beyond(self.batches[-1])
        base = self._coefficient(0, batch, batch, roof.base_ps)
        return base, factor * tokens * self._coefficient(1, batch, batch, roof.per_token_ps)

    def _fitted_unevenness(self) -> float:
        """The factor of least relative squares over the ragged steps; no less than 1."""
        upper = lower = 0.0
        for batch, tokens, time in self._ragged:
            base, context = self._parts(batch, tokens, 1.0)
            upper, lower = upper + (time - base) * context / time**2, lower + (context / time) ** 2
        return max(1.0, upper / lower) if lower else 1.0

    def _coefficient(self, which: int, batch: int, real_batch: int, roof: list[int]) -> float:
        """Intercept (0) or slope (1) at a batch; outside the table, that of the roof in proportion."""
        first, last = self.batches[0], self.batches[-1]
        if not first <= batch <= last:
            edge = min(max(batch, first), last)
            value = self._lines[edge][which]
            return value * roof[real_batch] / roof[edge] if roof[edge] else value
        points = [(float(known), self._lines[known][which]) for known in self.batches]
        return between(points, batch)

    def _along(self, batch: int, tokens: float) -> float:
        """A step of a measured batch; outside its contexts, the roof's in proportion."""
        points = self.points[batch]
        edge = min(max(tokens, points[0][0]), points[-1][0])
        time = between(points, edge)
        if edge == tokens:
            return time
        roof = self._beyond(self.batches[-1])
        slope, base = roof.per_token_ps[batch], roof.base_ps[batch]
        return time * (base + slope * tokens) / (base + slope * edge)


def longest_factor(batch: int, alone: float) -> float:
    """How much longer unequal sequences take than equal ones of as many tokens, for want of streams.

    Model: one sequence alone is read slower than memory allows: a token takes `alone` times what it takes
    among many. So a step waits for memory and for its longest sequence, and takes about the root of the sum
    of both squares. Lengths are dealt out exponentially: of n, the longest is 1 + 1/2 + ... + 1/n times the
    mean. Source: 27,900 steps served on an H200, see docs/models.md. Ignores: how unequal lengths really are.
    """
    own = max(alone * alone - 1, 0.0)
    longest = sum(1 / place for place in range(1, batch + 1))
    return sqrt((1 + own * (longest / batch) ** 2) / (1 + own / batch**2))


def _line(points: Sequence[Point], roof: DecodeTable, batch: int) -> Point:
    """The line of a batch; where there is one context only, with the roof's share of what grows."""
    if points[0][0] < points[-1][0]:
        return line(points)
    tokens, time = points[0]
    factor = time / (roof.base_ps[batch] + roof.per_token_ps[batch] * tokens)
    return roof.base_ps[batch] * factor, roof.per_token_ps[batch] * factor


def between(points: Sequence[Point], x: float) -> float:
    """The value at a place inside of rising points."""
    for (x1, y1), (x2, y2) in pairwise(points):
        if x1 <= x <= x2:
            return y1 if x == x1 else y1 + (y2 - y1) * (x - x1) / (x2 - x1) if x < x2 else y2
    return points[0][1]
