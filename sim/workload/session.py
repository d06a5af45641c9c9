"""Sessions: requests of one user that wait for each other.

A turn is asked for `think_ps` after the turn before has ended, whichever way it ended; the first one that
long after the session starts. Sessions start at instants of their own, or as soon as one of the users in
flight has none (closed loop). Turns of one session never overlap and keep their order.
Ignores: users who give up a session because of slow answers (see sim.workload.leaving for single requests).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from sim.workload.request import NEVER, NO_BLOCKS


class Turn(NamedTuple):
    """What a user asks next, and how long after the last answer."""

    think_ps: int
    input_tokens: int
    output_tokens: int
    blocks: Sequence[int] = NO_BLOCKS
    priority: int = 0
    cancelled_after_ps: int = NEVER


class Session(NamedTuple):
    """Turns of one user. `starts_ps` is None where it starts when a user has time for it."""

    id: int
    starts_ps: int | None
    turns: Iterator[Turn]


class SessionWorkload(Protocol):
    """Sessions in order of their start; iterating again gives the same.

    `users` is how many are in flight at any time, their first sessions begin evenly within `ramp_up_ps`; None
    where sessions start by themselves. At most `limit` requests are sent.
    """

    @property
    def block_tokens(self) -> int:
        """Tokens of one hashed block."""
        ...

    @property
    def users(self) -> int | None:
        """Users in flight."""
        ...

    @property
    def ramp_up_ps(self) -> int:
        """Over which time the users come."""
        ...

    @property
    def limit(self) -> int | None:
        """The most requests that are sent."""
        ...

    def sessions(self) -> Iterator[Session]:
        """Yield the sessions lazily."""
        ...

    def describe(self) -> str:
        """Say in one line what the workload is."""
        ...
