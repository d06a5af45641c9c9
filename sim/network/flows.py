"""Transfers in time: flows that start, share links max-min fairly, and end.

Model: a flow of B bytes ends when the integral of its rate reaches B; the end is rounded up to a whole
picosecond. What a flow has moved is only worked out when its rate changes.
Units: bytes, picoseconds.
"""

from __future__ import annotations

from heapq import heappop, heappush
from math import ceil

from simpy import Event

from sim.clock import FLOW_END, Clock
from sim.network.maxmin import Link, MaxMin, Rated


class Flow(Rated):
    """Bytes on their way: `done` happens when the last one has arrived.

    `links` are those that can hold it back, `counted` the ids of all links its bytes cross.
    """

    __slots__ = ("booked", "counted", "done", "ends_at_ps", "id", "left", "size", "updated_ps")

    def __init__(self, id: int, size: int, links: tuple[Link, ...], counted: tuple[int, ...], done: Event) -> None:
        super().__init__(links)
        self.id = id
        self.size = size
        self.counted = counted
        self.done = done
        self.left = float(size)
        self.booked = 0.0
        self.updated_ps = 0
        self.ends_at_ps = 0


class FlowNetwork:
    """All flows of the cluster, and the bytes that each link has carried.

    `carried[link]` counts bytes that have crossed, up to the last end of a flow or `settle`.
    """

    def __init__(self, clock: Clock, links: int) -> None:
        self.clock = clock
        self.maxmin = MaxMin()
        self.carried = [0.0] * links
        self.active = 0
        self.events = 0
        self._flows: dict[Flow, None] = {}
        self._ends: list[tuple[int, int, Flow]] = []
        self._alarm: Event | None = None
        self._alarm_ps = 0
        self._next_id = 0

    def start(self, size: int, links: tuple[Link, ...], counted: tuple[int, ...]) -> Event:
        """Begin to move `size` bytes over a path now; the event happens when they have arrived."""
        flow = Flow(self._next_id, size, links, counted, Event(self.clock))
        self._next_id += 1
        self.events += 1
        flow.updated_ps = self.clock.now
        self._flows[flow] = None
        self._reschedule(self.maxmin.add(flow))
        self._set_alarm()
        return flow.done

    def settle(self) -> None:
        """Book what the flows on their way have moved so far."""
        now = self.clock.now
        for flow in self._flows:
            self._book(flow, flow.size - flow.left + flow.rate * (now - flow.updated_ps))

    def _book(self, flow: Flow, moved: float) -> None:
        moved = min(moved, flow.size)
        fresh, flow.booked = moved - flow.booked, moved
        carried = self.carried
        for link in flow.counted:
            carried[link] += fresh

    def _reschedule(self, changed: dict[Rated, float]) -> None:
        """Account for what changed flows moved at their old rates, and work out when they end now."""
        now = self.clock.now
        for flow, old_rate in changed.items():
            assert isinstance(flow, Flow)
            if now > flow.updated_ps:
                flow.left = max(flow.left - old_rate * (now - flow.updated_ps), 0.0)
            flow.updated_ps = now
            flow.ends_at_ps = now + ceil(flow.left / flow.rate)
            heappush(self._ends, (flow.ends_at_ps, flow.id, flow))

    def _set_alarm(self) -> None:
        """See to it that the clock rings no later than the next end of a flow."""
        ends = self._ends
        while ends and (ends[0][2] not in self._flows or ends[0][2].ends_at_ps != ends[0][0]):
            heappop(ends)
        if not ends:
            return
        next_ps = ends[0][0]
        if self._alarm is None:
            self._alarm = self.clock.at(next_ps, FLOW_END)
            self._alarm.callbacks.append(self._on_alarm)
        elif next_ps < self._alarm_ps:
            self._alarm = self.clock.move(self._alarm, next_ps, FLOW_END)
        else:
            return
        self._alarm_ps = next_ps

    def _on_alarm(self, _: Event) -> None:
        """End every flow that is due, in the order of their ids, then tell those who wait."""
        self._alarm = None
        ended = self._due()
        for flow in ended:
            del self._flows[flow]
            self._book(flow, flow.size)
            self._reschedule(self.maxmin.remove(flow))
        self.events += len(ended)
        self._set_alarm()
        for flow in ended:
            self.clock.fire(flow.done)

    def _due(self) -> list[Flow]:
        now, ends = self.clock.now, self._ends
        due: list[Flow] = []
        while ends and ends[0][0] <= now:
            ends_at_ps, _, flow = heappop(ends)
            if flow in self._flows and flow.ends_at_ps == ends_at_ps and flow not in due:
                due.append(flow)
        return due
