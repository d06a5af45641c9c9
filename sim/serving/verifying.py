"""A colocated replica that decodes speculatively: a step gives each sequence one token or more.

Model: as sim.serving.swapping, with steps of sim.serving.speculation. What a sequence gets is drawn when it
joins, so that steps up to the first one that is done can be planned: each lasts what the table says for the
context that is there. Memory is taken for the drafts of a step too, but not beyond the end of the output; a
step that decodes beside prompts takes its drafts from the token budget. Tokens of one step come together, so
that there is a gap between the outputs of two steps, and none inside.
Units: tokens, picoseconds; steps count from the start of the simulation.
Ignores: that pages of wrong drafts could be given back at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Items
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

from sim.serving.job import Job
from sim.serving.order import Key
from sim.serving.plan import Seat
from sim.serving.segment import Row, Segment
from sim.serving.sequence import Sequence
from sim.serving.speculation import Calendar, Speculation
from sim.serving.swapping import SwappingReplica, Wires
from sim.timing.timing import Chunk

if TYPE_CHECKING:
    from sim.serving.colocated import ColocatedPool


class DraftedSequence(Sequence):
    """A sequence of which `drafts` tokens are guessed in each step; it has been through `verified` steps.

    Since it joined, its steps give it `gains`, `sums` of them after each.
    """

    __slots__ = ("drafts", "gains", "sums", "verified")

    def __init__(self, job: Job, key: Key, blocks: Items[int], drafts: int) -> None:
        super().__init__(job, key, blocks)
        self.drafts = drafts
        self.verified = 0
        self.gains: list[int] = []
        self.sums: list[int] = [0]

    def take_course(self, gains: list[int]) -> None:
        """Its steps will give it these."""
        self.gains = gains
        self.sums = list(accumulate(gains, initial=0))

    def gained(self, step: int) -> int:
        """Tokens that have come since it joined the decode batch."""
        return self.sums[step - self.joined_at]

    def context(self, step: int) -> int:
        """Tokens that a decode step looks back at; none comes after its last."""
        return self.total + self.sums[min(step - self.joined_at, len(self.sums) - 1)]

    def reach(self, step: int) -> int:
        """Tokens for which a decode step needs pages, drafts included."""
        request = self.job.request
        return min(self.context(step) + self.drafts, request.input_tokens + request.output_tokens)


@dataclass
class DraftedSegment(Segment):
    """Steps whose lengths follow no rule: `lengths_ps` has that of each."""

    lengths_ps: list[int] = field(default_factory=list)

    @property
    def ends_ps(self) -> int:
        """When the last step ends."""
        return self.began_ps + sum(self.lengths_ps[: self.steps])

    def cut(self, now_ps: int) -> bool:
        """End with the step under way, or with one that ends just now; whether that is sooner."""
        at_ps = self.began_ps
        for steps, length_ps in enumerate(self.lengths_ps[: self.steps - 1], 1):
            at_ps += length_ps
            if at_ps >= now_ps:
                self.steps = steps
                return True
        return False

    def rows(self, replica: int, batch: int, measured: int, token_ps: int) -> Iterator[Row]:
        """The rows of tables.SEGMENT_COLUMNS: one for each step at least."""
        first = Segment(self.began_ps, 1, self.first_ps, 0, self.newcomers, self.joined, self.late_ps)
        yield from first.rows(replica, batch, measured, token_ps)
        at_ps = self.began_ps + self.first_ps
        for length_ps in self.lengths_ps[1 : self.steps]:
            yield replica, at_ps, 1, length_ps, 0, batch, measured, 0
            at_ps += length_ps


class VerifyingReplica(SwappingReplica):
    """A replica whose steps verify drafts; `_calendar` has what its sequences will get."""

    def __init__(
        self, pool: ColocatedPool, number: int, seat: Seat, rank: int, how: tuple[Wires, Speculation]
    ) -> None:
        wires, self.speculation = how
        self._calendar = Calendar()
        self._drafts = self.speculation.drafts(pool.plan.timing, pool.limits.max_sequences)
        super().__init__(pool, number, seat, rank, wires)

    def _steps_left(self, sequence: Sequence) -> int:
        """Draw what its steps give a sequence that joins now; how many there are."""
        assert isinstance(sequence, DraftedSequence)
        request = sequence.job.request
        left = request.output_tokens - sequence.tokens
        sequence.take_course(self.speculation.course(request.id, sequence.verified, left))
        self._calendar.add(self._step, sequence.gains)
        return len(sequence.gains)

    def _take_out(self, sequence: Sequence) -> None:
        assert isinstance(sequence, DraftedSequence)
        if sequence not in self._under_way:
            taken = self._step - sequence.joined_at
            sequence.verified += taken
            self._calendar.cancel(self._step, sequence.gains[taken:])
        super()._take_out(sequence)

    def _mixed_ps(self, pieces: list[Chunk]) -> int:
        """How long a step lasts that verifies beside prompts, with its drafts."""
        batch, context = len(self._running), self._context
        wide = batch * (self.pool.lookahead + 1)
        return self.pool.plan.timing.mixed_ps(pieces, wide, context) + self._drafts.step_ps(batch, context)

    def _planned(self, began_ps: int, steps: int) -> Segment:
        """Decode steps from an instant on."""
        held = len(self._running), self._context
        lengths_ps = self._calendar.lengths_ps(self._step, steps, self.pool.steps, held)
        return DraftedSegment(began_ps, steps, lengths_ps[0], 0, lengths_ps=lengths_ps)

    def _gained(self, steps: int) -> int:
        """Tokens that the steps just taken gave."""
        return self._calendar.pass_by(self._step, steps)
