"""Decode replicas that verify drafts: a step gives each sequence of the batch one token or more.

Model: as sim.serving.decode, with steps of sim.serving.speculation. What a sequence gets is drawn when it
joins, so that steps up to the first one that is done can be planned. Memory is reserved whole anyway. Tokens
of one step come together, so that there is a gap between the outputs of two steps, and none inside.
Units: tokens, picoseconds; steps count from the start of the simulation.
Ignores: that routers could count with more than one token a step: they estimate the gap between outputs.
"""

from __future__ import annotations

from heapq import heapify, heappush

from sim.clock import Moment
from sim.serving.decode import DecodePool, DecodeReplica
from sim.serving.job import UNFINISHED, Job
from sim.serving.plan import Seat
from sim.serving.speculation import Calendar, Speculation
from sim.timing.timing import DecodeTable


class VerifyingPool(DecodePool):
    """Decode replicas whose steps verify drafts, what the router knows of them, and the router."""

    def _table(self) -> DecodeTable:
        assert self.speculation is not None
        return self.speculation.table(self.plan.timing, self.plan.max_sequences)

    def _replica(self, number: int, seat: Seat, rank: int) -> DecodeReplica:
        assert self.speculation is not None
        return VerifyingDecodeReplica(self, number, seat, rank, self.speculation)


class VerifyingDecodeReplica(DecodeReplica):
    """One copy of the model; `places` counts sequences over all steps: what `tokens` would be without drafts.

    `_courses` has for each request in the batch the step at which it joined, and what each step gives it.
    """

    __slots__ = ("_calendar", "_courses", "_lengths_ps", "places", "speculation")

    def __init__(
        self, pool: DecodePool, number: int, seat: Seat, rank: int, speculation: Speculation
    ) -> None:
        self.speculation = speculation
        self.places = 0
        self._calendar = Calendar()
        self._courses: dict[int, tuple[int, list[int]]] = {}
        self._lengths_ps: list[int] = []
        super().__init__(pool, number, seat, rank)

    def _admit(self) -> list[Job]:
        """Let waiting sequences join, in the order in which their KV arrived."""
        room = self.pool.plan.max_sequences - len(self._running)
        tokens_before = 0 if self.pool.first_token_here else 1
        joined: list[Job] = []
        while self._waiting and room:
            job = self._waiting.popleft()
            request = job.request
            gains = self.speculation.course(request.id, 0, request.output_tokens - tokens_before)
            heappush(self._running, (self._step + len(gains), request.id, job))
            self._calendar.add(self._step, gains)
            self._courses[request.id] = self._step, gains
            self._context += request.input_tokens + tokens_before
            joined.append(job)
            room -= 1
        return joined

    def _begin_segment(self, joined: list[Job]) -> Moment:
        """Plan steps up to the first sequence that is done; the event is the end of the last step."""
        steps = self._running[0][0] - self._step
        held = len(self._running), self._context
        self._lengths_ps = self._calendar.lengths_ps(self._step, steps, self.pool.steps, held)
        self._take_in(joined, self._lengths_ps[0])
        return self.clock.at(self._began_ps + self._duration_ps(), self._rank)

    def _duration_ps(self) -> int:
        """How long the segment lasts."""
        return sum(self._lengths_ps[: self._steps])

    def _crossing_bytes(self) -> float:
        """What the collectives of the segment send out of each NVLink domain, drafts included."""
        return super()._crossing_bytes() * (self.speculation.draft_tokens + 1)

    def _cut_short(self, alarm: Moment) -> None:
        """End the segment at the first step boundary at or after now."""
        at_ps = self._began_ps
        for steps, length_ps in enumerate(self._lengths_ps[: self._steps - 1], 1):
            at_ps += length_ps
            if at_ps >= self.clock.now:
                self._steps = steps
                self._alarm = self.clock.move(alarm, at_ps, self._rank)
                return

    def _note_segment(self) -> int:
        """Record the steps of the segment, each with a row of its own; the tokens that they gave."""
        at_ps, joined, batch = self._began_ps, self._joined, len(self._running)
        for length_ps in self._lengths_ps[: self._steps]:
            self._record((self.number, at_ps, 1, length_ps, 0, batch, self._measured, joined))
            at_ps += length_ps
            joined = 0
        self.places += batch * self._steps
        return self._calendar.pass_by(self._step, self._steps)

    def _drop_gone(self) -> None:
        """Let go of sequences whose users have left; each has as much context as it has got tokens."""
        leaving = [entry for entry in self._running if entry[2].status != UNFINISHED]
        self._running[:] = [entry for entry in self._running if entry[2].status == UNFINISHED]
        heapify(self._running)
        self._gone = 0
        for _, number, job in sorted(leaving, key=lambda entry: entry[1]):
            began, gains = self._courses.pop(number)
            rest = gains[self._step - began :]
            self._calendar.cancel(self._step, rest)
            self._context -= job.request.input_tokens + job.request.output_tokens - sum(rest)
            self._measured -= job.measured
            self.let_go(job)

    def _finish(self, job: Job) -> None:
        del self._courses[job.request.id]
        super()._finish(job)
