"""What users add to the requests of a workload: how urgent they are, and whether they take them back.

Model: each request (each session, as to its urgency) draws its priority class by share, and each request
whether it is taken back, after an exponentially distributed time. Both have streams of their own, so that the
same requests come with and without them.
Ignores: any relation between length, urgency and patience.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from sim.workload.request import NEVER, Request, Workload
from sim.workload.session import Session, SessionWorkload, Turn

if TYPE_CHECKING:
    from sim.base.streams import Streams
    from sim.config.scenario import Workload as WorkloadForm

CHUNK = 1024


@dataclass(frozen=True)
class Marked:
    """Another workload, its requests marked."""

    plain: Workload
    form: WorkloadForm
    streams: Streams

    @property
    def block_tokens(self) -> int:
        """Tokens of one hashed block."""
        return self.plain.block_tokens

    @property
    def skipped_rows(self) -> int:
        """Bad rows that the latest pass skipped."""
        return getattr(self.plain, "skipped_rows", 0)

    def __iter__(self) -> Iterator[Request]:
        priority, patience = _priority(self.form, self.streams), _patience(self.form, self.streams, "")
        for request in self.plain:
            yield request._replace(priority=priority(), cancelled_after_ps=patience())

    def describe(self) -> str:
        """Say in one line what the workload is."""
        return self.plain.describe()


@dataclass(frozen=True)
class MarkedSessions:
    """Another workload of sessions, their turns marked."""

    plain: SessionWorkload
    form: WorkloadForm
    streams: Streams

    @property
    def block_tokens(self) -> int:
        """Tokens of one hashed block."""
        return self.plain.block_tokens

    @property
    def users(self) -> int | None:
        """Users in flight."""
        return self.plain.users

    @property
    def ramp_up_ps(self) -> int:
        """Over which time the users come."""
        return self.plain.ramp_up_ps

    @property
    def limit(self) -> int | None:
        """The most requests that are sent."""
        return self.plain.limit

    def sessions(self) -> Iterator[Session]:
        """The sessions, each with a priority, its turns with a patience."""
        priority = _priority(self.form, self.streams)
        for session in self.plain.sessions():
            yield session._replace(turns=self._turns(session, priority()))

    def _turns(self, session: Session, priority: int) -> Iterator[Turn]:
        patience = _patience(self.form, self.streams, f".{session.id}")
        for turn in session.turns:
            yield turn._replace(priority=priority, cancelled_after_ps=patience())

    def describe(self) -> str:
        """Say in one line what the workload is."""
        return self.plain.describe()


def _priority(form: WorkloadForm, streams: Streams) -> Callable[[], int]:
    """What draws the next priority."""
    if not form.priorities:
        return lambda: 0
    random = streams.stream("workload.priority")
    draws = chain.from_iterable(random.random(CHUNK).tolist() for _ in iter(int, 1))

    def draw() -> int:
        left = next(draws)
        for part in form.priorities:
            left -= part.share
            if left < 0:
                return part.priority
        return 0

    return draw


def _patience(form: WorkloadForm, streams: Streams, whose: str) -> Callable[[], int]:
    """What draws after which time the next request is taken back, if it is."""
    cancel = form.cancel
    if cancel is None:
        return lambda: NEVER
    random = streams.stream(f"workload.cancel{whose}")

    def draw() -> int:
        is_taken_back, after_ps = random.random() < cancel.share, random.exponential(cancel.after)
        return max(round(after_ps), 1) if is_taken_back else NEVER

    return draw
