"""Prefills from a table of measured ones, by new and cached tokens.

Model: a batch of prompts with n new and c cached tokens each takes

    f(sum of n) + pair x sum of n (n + 1) / 2 + sum of extra(n, c).

f is linear between the measured prompts, so that a single prompt costs what the table says, piecewise
quadratic between its points; `pair`, the time of one query meeting one key, is fitted to batches of equal
prompts where the table has them, and taken from the other provider where not. extra, what a cached prefix
adds, is interpolated linearly in n and c over the table's grid, which is exact for a cost of n c and c.
Outside the table the other provider carries on, scaled to meet it at the edge.
Units: picoseconds, tokens. Ignores: what a host adds; that attention of short prompts is launched per prompt.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

from sim.config.device import PrefillStep
from sim.timing.decodesteps import between
from sim.timing.fit import FitError
from sim.timing.timing import Chunk

Beyond = Callable[[Sequence[Chunk]], int]


def pairs(new: int) -> float:
    """Queries times keys of a prompt, under a causal mask."""
    return new * (new + 1) / 2


class PrefillSteps:
    """Prefills measured at some sizes; `beyond` is the provider outside of them."""

    def __init__(self, rows: Sequence[PrefillStep], beyond: Beyond) -> None:
        self.rows, self._beyond = rows, beyond
        fresh = sorted((row.new, row.median_ps) for row in rows if row.prompts == 1 and not row.cached)
        self.shortest, self.longest = fresh[0][0], fresh[-1][0]
        self.pair_ps = self._fitted_pair(fresh)
        self._starts = [new for new, _ in fresh]
        self._values = [time - self.pair_ps * pairs(new) for new, time in fresh]
        self.prefixes = Prefixes([row for row in rows if row.cached], self.batch_ps, beyond)

    @property
    def error(self) -> FitError:
        """How far the model lies from the table."""
        return FitError.of(
            (self.prefill_ps([(row.new, row.cached)] * row.prompts), row.median_ps) for row in self.rows
        )

    def prefill_ps(self, chunks: Sequence[Chunk]) -> float:
        """A prefill of a batch of (new, cached) tokens."""
        time = self.batch_ps([new for new, _ in chunks])
        for new, cached in chunks:
            if cached:
                time += self.prefixes.extra_ps(new, cached)
        return time

    def covers(self, chunks: Sequence[Chunk]) -> bool:
        """Whether a batch lies inside the table."""
        total = sum(new for new, _ in chunks)
        if not self.shortest <= total <= self.longest:
            return False
        return all(self.prefixes.covers(new, cached) for new, cached in chunks if cached)

    def batch_ps(self, prompts: Sequence[int]) -> float:
        """A batch of prompts without prefixes."""
        total = sum(prompts)
        if not self.shortest <= total <= self.longest:
            return self._outside(prompts, total)
        time = self.pair_ps * sum(map(pairs, prompts))
        piece = min(bisect_right(self._starts, total), len(self._starts) - 1) - 1
        if piece < 0:  # one point only
            return time + self._values[0]
        x1, x2 = self._starts[piece], self._starts[piece + 1]
        y1, y2 = self._values[piece], self._values[piece + 1]
        return time + y1 + (y2 - y1) * (total - x1) / (x2 - x1)

    def _outside(self, prompts: Sequence[int], total: int) -> float:
        """The other provider's time, times what the table makes of it at the edge."""
        edge = self.shortest if total < self.shortest else self.longest
        inside = shrunk(prompts, total, edge)
        there = self._beyond([(new, 0) for new in prompts]) / self._beyond([(new, 0) for new in inside])
        return self.batch_ps(inside) * there

    def _fitted_pair(self, fresh: Sequence[tuple[int, int]]) -> float:
        """Time of a pair: what prompts save by not looking at each other, in least relative squares."""
        points = [(float(new), float(time)) for new, time in fresh]
        upper = lower = 0.0
        for row in self.rows:
            total = row.new * row.prompts
            if row.prompts > 1 and not row.cached and self.shortest <= total <= self.longest:
                saved_pairs = (pairs(total) - row.prompts * pairs(row.new)) / row.median_ps
                saved = (between(points, total) - row.median_ps) / row.median_ps
                upper, lower = upper + saved * saved_pairs, lower + saved_pairs * saved_pairs
        if lower and upper > 0:
            return upper / lower
        half = self.longest // 2
        if not half:
            return 0.0
        saved_ps = self._beyond([(2 * half, 0)]) - self._beyond([(half, 0), (half, 0)])
        return max(0.0, saved_ps / (pairs(2 * half) - 2 * pairs(half)))


class Prefixes:
    """What a cached prefix adds to a prompt, on a grid of new and cached tokens."""

    def __init__(
        self, rows: Sequence[PrefillStep], fresh_ps: Callable[[Sequence[int]], float], beyond: Beyond
    ) -> None:
        self._fresh_ps, self._beyond = fresh_ps, beyond
        times = {(row.new, row.cached): row.median_ps for row in rows if row.prompts == 1}
        self.new = sorted({new for new, _ in times})
        # Where memory was short, the longest prefixes are missing for the longest prompts.
        self.cached = [
            cached
            for cached in sorted({cached for _, cached in times})
            if all((new, cached) in times for new in self.new)
        ]
        self._extra = [
            [0.0, *(times[new, cached] - fresh_ps([new]) for cached in self.cached)] for new in self.new
        ]
        self._columns = [0, *self.cached]

    def covers(self, new: int, cached: int) -> bool:
        """Whether a prompt lies on the grid."""
        return bool(self.cached) and self.new[0] <= new <= self.new[-1] and cached <= self.cached[-1]

    def extra_ps(self, new: int, cached: int) -> float:
        """What the prefix adds; outside the grid, what the other provider adds in proportion."""
        if self.covers(new, cached):
            return self._on_grid(new, cached)
        if not self.cached:
            factor = self._fresh_ps([new]) / self._beyond([(new, 0)])
            return self._added(new, cached) * factor
        near, far = min(max(new, self.new[0]), self.new[-1]), min(cached, self.cached[-1])
        edge, roof = self._on_grid(near, far), self._added(near, far)
        return edge * self._added(new, cached) / roof if roof else edge

    def _added(self, new: int, cached: int) -> int:
        return self._beyond([(new, cached)]) - self._beyond([(new, 0)])

    def _on_grid(self, new: int, cached: int) -> float:
        row, along = place(self.new, new)
        column, across = place(self._columns, cached)
        low, high = self._extra[row], self._extra[min(row + 1, len(self._extra) - 1)]
        below = low[column] + (low[column + 1] - low[column]) * across
        above = high[column] + (high[column + 1] - high[column]) * across
        return below + (above - below) * along


def place(marks: Sequence[int], x: int) -> tuple[int, float]:
    """Between which marks a number lies, and how far along."""
    if len(marks) == 1:
        return 0, 0.0
    piece = min(max(bisect_right(marks, x) - 1, 0), len(marks) - 2)
    return piece, (x - marks[piece]) / (marks[piece + 1] - marks[piece])


def shrunk(prompts: Sequence[int], total: int, edge: int) -> list[int]:
    """Prompts in the same proportions that have so many tokens together, each at least one.

    There are no more prompts than tokens.
    """
    kept = list(prompts[:edge])
    shares = [max(1, new * edge // total) for new in kept]
    shares[shares.index(max(shares))] += edge - sum(shares)
    return shares if min(shares) > 0 else [edge]
