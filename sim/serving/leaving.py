"""Users who leave before their request has ended: it timed out, or they took it back.

Model: what has not begun is taken out at once: from the queue of a prefill replica, from those who wait for
decode memory, from those whose KV has arrived. A prompt that is being computed is computed to its end, and KV
that is moving arrives; then both are let go. A sequence that generates leaves its batch at the next step
boundary. Routers forget its tokens when the user leaves.
Ignores: messages from the front end to the engine, and their time.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING

from simpy import Event

from sim.clock import ARRIVAL, Clock, Errand
from sim.serving.job import CANCELLED, TIMED_OUT, UNFINISHED, Job
from sim.tables.schema import NOT_YET
from sim.workload.request import Request

if TYPE_CHECKING:
    from sim.serving.cluster import Serving


class Leaving:
    """Watches requests and takes them out; `left` is called with each whose user has left."""

    def __init__(self, serving: Serving, timeout_ps: int | None, left: Callable[[Job], None]) -> None:
        self.clock: Clock = serving.clock
        self.prefill = serving.prefill
        self.decode = serving.decode
        self.colocated = serving.colocated
        self.timeout_ps = timeout_ps
        self.left = left

    def watch(self, job: Job) -> None:
        """A request has been taken in: its user may leave later."""
        until_ps, status = self._patience(job.request)
        if status != UNFINISHED:
            leaves_ps = max(self.clock.now, job.request.arrived_ps + until_ps)
            Errand(self._wait(job, leaves_ps, status))

    def _patience(self, request: Request) -> tuple[int, int]:
        """After which time the user leaves, and as what; UNFINISHED where never."""
        cancelled_ps, timeout_ps = request.cancelled_after_ps, self.timeout_ps
        if cancelled_ps >= 0 and (timeout_ps is None or cancelled_ps < timeout_ps):
            return cancelled_ps, CANCELLED
        return (timeout_ps, TIMED_OUT) if timeout_ps is not None else (0, UNFINISHED)

    def _wait(self, job: Job, at_ps: int, status: int) -> Generator[Event, None, None]:
        yield self.clock.at(at_ps, ARRIVAL + job.request.id)
        if job.status == UNFINISHED:
            self._leave(job, status)

    def _leave(self, job: Job, status: int) -> None:
        """Take a request out of wherever it is."""
        now = self.clock.now
        job.status = status
        if job.first_token_ps >= now:
            job.first_token_ps = NOT_YET
        if job.second_token_ps >= now:
            job.second_token_ps = NOT_YET
        if job.is_colocated:
            assert self.colocated is not None
            self.colocated.leave(job)
        else:
            self._leave_pools(job)
        self.left(job)

    def _leave_pools(self, job: Job) -> None:
        """Take a request out of the queue, or of what waits for it on the decode side."""
        is_queued = job.prefill_replica >= 0 and job.prefill_ps < 0
        if is_queued:
            self.prefill.withdraw(job)
        if job.decode_replica < 0:
            return
        target = self.decode.forget(job)
        if target.withdraw(job):
            job.is_withdrawn = True
            if job.computed_ps >= 0:
                self.prefill.replicas[job.prefill_replica].release(job)
        elif job.kv_arrived_ps >= 0:
            target.leave(job)
        elif is_queued and job.reserved_ps >= 0:  # its memory was reserved before its prompt was queued
            target.let_go(job)
