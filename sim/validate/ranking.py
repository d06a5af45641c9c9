"""Whether predictions put runs in the order in which they were measured.

Model: of all pairs of rows of a group that were measured to differ by more than a given ratio, the part whose
predictions differ in the same direction. A coin gets half of them right.
Ignores: by how much they differ.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

from sim.validate.comparison import Comparison


@dataclass(frozen=True, slots=True)
class Order:
    """Pairs that were measured to differ, and how many of them are predicted the right way round."""

    pairs: int
    right: int

    @property
    def share(self) -> float | None:
        """The part that is right; None where there is no pair."""
        return self.right / self.pairs if self.pairs else None


def order_kept(rows: Iterable[Comparison], least_ratio: float) -> Order:
    """Look at every pair of rows whose measurements differ by at least this ratio."""
    pairs = right = 0
    for one, other in combinations(rows, 2):
        low, high = sorted((one, other), key=lambda row: row.measured)
        if high.measured >= least_ratio * low.measured:
            pairs += 1
            right += high.predicted > low.predicted
    return Order(pairs, right)


def order_within_groups(rows: Iterable[Comparison], least_ratio: float) -> Order:
    """The same, of pairs in which both rows are about the same: equal group, metric and unit."""
    groups: dict[tuple[str, str, str], list[Comparison]] = {}
    for row in rows:
        groups.setdefault((row.group, row.metric, row.unit), []).append(row)
    orders = [order_kept(group, least_ratio) for group in groups.values()]
    return Order(sum(order.pairs for order in orders), sum(order.right for order in orders))
