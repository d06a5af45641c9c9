"""Predicted times between tokens (TBT): a step of each decode replica with one sequence more.

Model: a replica runs all sequences that it has been given and that are not done, as many as fit a batch, each
with its prompt and half of its output as context. It has room for one more if the batch has, and the KV
memory. The least loaded of a unit is the one with the shortest step now among those that have room for one
more such as those they have.
Units: picoseconds, tokens, pages.
Ignores: that sequences on their way have not joined yet, prompts that are still in prefill, and that nobody
knows the length of an output beforehand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.serving.routers import View
from sim.serving.stale import Stale
from sim.serving.unitloads import UnitLoads
from sim.workload.request import Request

if TYPE_CHECKING:
    from sim.serving.decode import DecodePool

FULL_PS = 1 << 60
"""Added to the step of a replica without room, so that it comes last."""

Change = tuple[int, int, int, int]
"""A replica, and how many more sequences, tokens of context, and pages it has."""


class DecodeEstimates:
    """What is known of each replica: sequences, tokens of context, pages."""

    def __init__(self, pool: DecodePool, stale_ps: int) -> None:
        self.pool = pool
        replicas = len(pool.plan.seats)
        self.loads = UnitLoads(pool.plan.units or (0,) * replicas)
        self._sequences = [0] * replicas
        self._context = [0] * replicas
        self._pages = [0] * replicas
        self._stale: Stale[Change] = Stale(stale_ps, self._learn)
        self._tokens = 0
        self._wanted_pages = 0

    def ask(self, request: Request, view: View) -> None:
        """Ask about a request from now on."""
        self._stale.catch_up(view.now_ps)
        self._tokens = held_tokens(request)
        self._wanted_pages = self.pool.kv_pages(request.input_tokens + request.output_tokens)

    def best(self) -> int:
        """Of the replicas with the shortest step of each unit, the one with the least cost."""
        return min(self.loads.least(), key=self.cost)

    def cost(self, replica: int) -> tuple[int, ...]:
        """What is to be the least: those with room first, then the prediction, then who was chosen last."""
        is_full = not self.has_room(replica)
        return is_full, self.tbt_ps(replica), self.loads.chosen_at[replica], replica

    def tbt_ps(self, replica: int) -> int:
        """How long a step would be with the request."""
        return self._step_ps(self._sequences[replica] + 1, self._context[replica] + self._tokens)

    def has_room(self, replica: int) -> bool:
        """Whether the request could join at once."""
        return (
            self._sequences[replica] < self.pool.plan.max_sequences
            and self._pages[replica] + self._wanted_pages <= self.pool.capacity_pages
        )

    def assign(self, replica: int, request: Request, pages: int, now_ps: int) -> None:
        """A replica has been given a request."""
        self._stale.tell(now_ps, (replica, 1, held_tokens(request), pages))

    def done(self, replica: int, request: Request, pages: int, now_ps: int) -> None:
        """A request has all its tokens."""
        self._stale.tell(now_ps, (replica, -1, -held_tokens(request), -pages))

    def _learn(self, change: Change) -> None:
        replica, sequences, tokens, pages = change
        self._sequences[replica] += sequences
        self._context[replica] += tokens
        self._pages[replica] += pages
        batch, held = self._sequences[replica], self._pages[replica]
        step_ps = self._step_ps(batch, self._context[replica])
        if batch and (
            batch >= self.pool.plan.max_sequences or held + held // batch > self.pool.capacity_pages
        ):
            step_ps += FULL_PS
        if sequences > 0:
            self.loads.choose(replica, step_ps)
        else:
            self.loads.set(replica, step_ps)

    def _step_ps(self, sequences: int, context: int) -> int:
        """A step of so many sequences, of which those beyond the largest batch wait."""
        most = self.pool.plan.max_sequences
        if sequences > most:
            return self.pool.steps.step_ps(most, context * most // sequences)
        return self.pool.steps.step_ps(sequences, context)


def held_tokens(request: Request) -> int:
    """Context of a sequence over its life, on average."""
    return request.input_tokens + request.output_tokens // 2
