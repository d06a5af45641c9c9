"""SimPy's environment, counting integer picoseconds, with ties decided by (time, kind, id).

Two events at the same picosecond happen in the order of their kind, then of their id, never in the order
in which somebody happened to schedule them: flows end first, then requests arrive, then timers ring, then
flows start. So a replica that decides in a timer has seen everything that came in at that instant.
"""

from __future__ import annotations

from simpy import Environment, Event

FLOW_END = 1 << 40
ARRIVAL = 2 << 40
TIMER = 3 << 40
FLOW_START = 4 << 40
"""Kinds: added to an id below 2**40 they give the rank of an event among those of the same instant."""


class Clock(Environment):  # type: ignore[misc]
    """A SimPy environment whose time is an integer number of picoseconds."""

    def __init__(self) -> None:
        super().__init__(initial_time=0)

    def at(self, at_ps: int, rank: int) -> Event:
        """Return an event that happens at an instant, in its rank among the events there."""
        event = Event(self)
        event._ok = True
        event._value = None
        self.schedule(event, rank, at_ps - self._now)
        return event

    def ring(self, event: Event, rank: int) -> None:
        """Let a pending event happen now, in its rank among the events of this instant."""
        event._ok = True
        event._value = None
        self.schedule(event, rank, 0)

    @staticmethod
    def fire(event: Event) -> None:
        """Let a pending event happen at once, inside the event that is being processed."""
        event._ok = True
        event._value = None
        callbacks, event.callbacks = event.callbacks, None
        for callback in callbacks:
            callback(event)

    def move(self, event: Event, at_ps: int, rank: int) -> Event:
        """Replace a scheduled event by one at another instant, which whoever waits now waits for.

        The old one stays in SimPy's heap and passes unnoticed.
        """
        moved = self.at(at_ps, rank)
        moved.callbacks, event.callbacks = event.callbacks, []
        return moved
