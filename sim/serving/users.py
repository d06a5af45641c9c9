"""Users who wait for answers: the closed loop between the cluster and what is asked of it.

Model: see sim.workload.session. A user whose request is rejected asks the next one `BACKOFF_PS` later at the
earliest, so that a cluster that rejects at once is not asked without end at one instant. Requests are
numbered as they arrive. After the end of the window nobody asks any more.
"""

from __future__ import annotations

from collections.abc import Generator

from simpy import Event

from sim.clock import ARRIVAL, Clock, Errand
from sim.serving.cluster import Serving
from sim.serving.job import REJECTED, Job
from sim.workload.request import Request
from sim.workload.session import Session, SessionWorkload, Turn

BACKOFF_PS = 10**12
"""A second: what client libraries wait before they try again."""


class Users:
    """Plays the sessions of a workload against a serving cluster; `play` starts it."""

    def __init__(
        self, clock: Clock, serving: Serving, workload: SessionWorkload, until_ps: int | None
    ) -> None:
        self.clock = clock
        self.serving = serving
        self.workload = workload
        self.until_ps = until_ps
        self.asked = 0
        self._coming = iter(workload.sessions())
        self._current: dict[int, Session] = {}
        self._open = 0
        self._is_over = False
        serving.when_done = self._done

    def play(self) -> None:
        """Let sessions begin; `serving.offered` happens when nobody will ask any more."""
        self.serving.begin()
        users = self.workload.users
        self._open += 1  # this beginning, so that nothing is over before it is
        if users is None:
            Errand(self._started_by_themselves())
        else:
            for user in range(users):
                self._begin_next(self.workload.ramp_up_ps * user // users)
            self._closed()
        if self.until_ps is not None:
            Errand(self._end(self.until_ps + self.serving.plan.request_time_ps))

    def _started_by_themselves(self) -> Generator[Event, None, None]:
        for session in self._coming:
            assert session.starts_ps is not None
            if self._is_over or (self.until_ps is not None and session.starts_ps >= self.until_ps):
                break
            if session.starts_ps > self.clock.now:
                yield self.clock.at(session.starts_ps, ARRIVAL + session.id)
            self._begin(session, self.clock.now)
        self._closed()

    def _end(self, at_ps: int) -> Generator[Event, None, None]:
        yield self.clock.at(at_ps, ARRIVAL)
        self._stop()

    def _begin_next(self, at_ps: int) -> None:
        """A user begins the next session that nobody has had."""
        session = next(self._coming, None)
        if session is not None:
            self._begin(session, at_ps)

    def _begin(self, session: Session, at_ps: int) -> None:
        self._open += 1
        self._go_on(session, at_ps)

    def _go_on(self, session: Session, from_ps: int) -> None:
        """Ask the next turn of a session when the user has thought, or close it."""
        turn = None if self._is_over else next(session.turns, None)
        if turn is not None:
            at_ps = from_ps + turn.think_ps
            if self.until_ps is None or at_ps < self.until_ps:
                Errand(self._ask(session, turn, at_ps))
                return
        elif self.workload.users is not None and not self._is_over:
            self._begin_next(from_ps)
        self._closed()

    def _ask(self, session: Session, turn: Turn, at_ps: int) -> Generator[Event, None, None]:
        yield self.clock.at(at_ps, ARRIVAL + session.id)
        if self._is_over:
            self._closed()
            return
        number, self.asked = self.asked, self.asked + 1
        self._current[number] = session
        request = Request(
            number,
            self.clock.now,
            turn.input_tokens,
            turn.output_tokens,
            turn.blocks,
            session.id,
            turn.priority,
            turn.cancelled_after_ps,
        )
        is_last = self.asked == self.workload.limit
        self.serving.last_arrival_ps = self.clock.now
        if self.serving.plan.request_time_ps:
            yield self.clock.at(self.clock.now + self.serving.plan.request_time_ps, ARRIVAL + session.id)
        self.serving.accept(request)
        if is_last:
            self._stop()

    def _done(self, job: Job) -> None:
        """A request has come to its end."""
        session = self._current.pop(job.request.id)
        wait_ps = BACKOFF_PS if job.status == REJECTED else 0
        self._go_on(session, self.clock.now + wait_ps)

    def _closed(self) -> None:
        """A session has no turns left, or its user has left."""
        self._open -= 1
        if not self._open:
            self._stop()

    def _stop(self) -> None:
        """Nobody asks any more."""
        if not self._is_over:
            self._is_over = True
            self.serving.offered.fire()
