"""Scores of replicas: how much of a prompt they hold, and how little they have to do.

Model: score = tokens held / tokens of the prompt + weight x (most - load) / (most - least), the last factor 1
where all loads are equal. The best of all replicas is found without looking at all: holders are looked at
from the longest prefix on, as long as one who holds so much could still be better.
Source: the scorers of the llm-d inference scheduler, and its choice of the highest sum.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from sim.kvpool.tree import Match
from sim.workload.request import Request

if TYPE_CHECKING:
    from sim.serving.routers import View


class Scores:
    """The scores of the replicas of a pool for one request."""

    def __init__(self, request: Request, view: View) -> None:
        self.input_tokens, self.block_tokens = request.input_tokens, view.block_tokens
        self.tokens, self.chosen_at, self.weight = view.loads.tokens, view.loads.chosen_at, view.load_weight
        self.least = view.loads.least()
        self.highest = max(self.tokens)
        self.span = self.highest - self.tokens[self.least]

    def most(self, held: int) -> float:
        """The score of an idle replica that holds so many blocks."""
        return min(held * self.block_tokens, self.input_tokens) / self.input_tokens + self.weight

    def score(self, replica: int, held: int) -> float:
        """The score of a replica that holds so many blocks."""
        idleness = (self.highest - self.tokens[replica]) / self.span if self.span else 1.0
        return min(held * self.block_tokens, self.input_tokens) / self.input_tokens + self.weight * idleness

    def best(self, match: Match) -> int:
        """The highest; of several, the least loaded, then the one chosen longest ago."""
        best, best_is = self.least, self.score(self.least, match.depth(self.least))
        for longest, holders in _by_depth(match):
            most = self.most(longest)
            if most < best_is or (most == best_is and best == self.least):
                break
            for replica, held in holders:
                value = self.score(replica, held)
                if value > best_is or (value == best_is and self._order(replica) < self._order(best)):
                    best, best_is = replica, value
        return best

    def _order(self, replica: int) -> tuple[int, int, int]:
        return self.tokens[replica], self.chosen_at[replica], replica


def _by_depth(match: Match) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Stretches from the end of a match on: how far each goes, and who holds how much and no later one."""
    later: Collection[int] = ()
    for stretch in reversed(match.path):
        inside = match.reach if stretch is match.path[-1] else stretch.length
        held = [
            (replica, stretch.start + min(holding.held, inside))
            for replica, holding in stretch.holders.items()
            if replica not in later
        ]
        yield stretch.start + inside, held
        later = stretch.holders.keys()
