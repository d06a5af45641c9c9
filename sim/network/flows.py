"""Transfers in time: flows that start, share links max-min fairly, and end.

Model: a flow of B bytes ends when the integral of its rate reaches B; the end is rounded up to a whole
picosecond. Its end is a scheduled event; when its rate changes what it has moved is worked out and the end
moves.
Waiting: a transfer that had its links to itself would run at some rate; while it runs at a smaller one, the
share of time that it falls behind is charged to the link that holds it back. The charges of a transfer add
up to exactly what sharing cost it (sim.network.waiting).
Units: bytes, picoseconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from math import ceil

from simpy import Event

from sim.base.errors import SimulationError
from sim.clock import FLOW_END, FOREVER, Clock, Moment
from sim.network.maxmin import Link, MaxMin, Rated
from sim.network.path import Path
from sim.network.waiting import delivery, rates_alone
from sim.tables.schema import PS_PER_S


class Transfer(Moment):
    """Flows that belong together: happens when the last byte of the last one is there."""

    def __init__(self, clock: Clock, flows: int) -> None:
        super().__init__(clock)
        self.flows = flows


class Flow(Rated):
    """Bytes on their way; `end` is the event of their end, which moves when the rate changes.

    `links` are those that can hold it back, `counted` the ids of all links its bytes cross; `left` is what
    had not moved at `updated_ps`, `booked` what the counters of the links know of. `alone` is its rate when
    nobody else is there, `holder` the link that has held it back since `updated_ps`, `waited` the
    picoseconds that each link has cost it.
    """

    __slots__ = (
        "alone",
        "booked",
        "counted",
        "end",
        "holder",
        "id",
        "left",
        "size",
        "transfer",
        "updated_ps",
        "waited",
    )

    def __init__(self, id: int, size: int, path: Path, transfer: Transfer | None, now_ps: int) -> None:
        self.links = path.links
        self.rate = 0.0
        self.bottleneck = None
        self.id = id
        self.size = size
        self.counted = path.counted
        self.transfer = transfer
        self.left = float(size)
        self.booked = 0.0
        self.updated_ps = now_ps
        self.end: Moment | None = None
        self.alone = 0.0
        self.holder: Link | None = None
        self.waited: dict[int, float] | None = None


class Taken:
    """A part of a link that flows do not get, in bytes per picosecond; `whole` is the capacity with it."""

    __slots__ = ("rate", "since_ps", "whole")

    def __init__(self, whole: float, now_ps: int) -> None:
        self.whole = whole
        self.rate = 0.0
        self.since_ps = now_ps


class FlowNetwork:
    """All flows of the cluster, and the bytes that each link has carried.

    `carried[link]` counts bytes that have crossed, up to the last end of a flow or `settle`;
    `waited_ps[link]` what the link has cost transfers, each charged when its rate changes and when it ends;
    `events` counts starts and ends.
    """

    def __init__(self, clock: Clock, carried: list[float]) -> None:
        self.clock = clock
        self.maxmin: MaxMin[Flow] = MaxMin()
        self.carried = carried
        self.waited_ps: defaultdict[int, float] = defaultdict(float)
        self.events = 0
        self._flows: dict[Flow, None] = {}
        self._changed: dict[int, Link] = {}
        self._taken: dict[Link, Taken] = {}
        self._next_id = 0

    @property
    def active(self) -> int:
        """Flows on their way."""
        return len(self._flows)

    def send(self, parts: Sequence[tuple[int, Path]]) -> Moment:
        """Begin to move (bytes, path) parts now; the event happens when all of them have arrived.

        Its value is a Delivery. Yield it at once: that of a single part is put in another's place when its
        rate changes.
        """
        self.events += len(parts)
        if self._changed:
            parts = [(size, self._with_changed(path)) for size, path in parts]
        rates = rates_alone(parts)
        if len(parts) == 1:
            return self._start(*parts[0], rates[0], None)
        transfer = Transfer(self.clock, len(parts))
        for (size, path), rate in zip(parts, rates, strict=True):
            self._start(size, path, rate, transfer)
        return transfer

    def _start(self, size: int, path: Path, alone: float, transfer: Transfer | None) -> Moment:
        flow = Flow(self._next_id, size, path, transfer, self.clock.now)
        flow.alone = alone
        self._next_id += 1
        self._flows[flow] = None
        self._reschedule(self.maxmin.add(flow))
        assert flow.end is not None
        return flow.end

    def set_capacity(self, link: Link, bytes_per_s: float) -> None:
        """Let a link carry more or less from now on, nothing included: something failed or was mended.

        A link that could hold nobody back was left out of the sharing; from now on it takes part.
        """
        for flow in self._flows:
            if link.id in flow.counted and link not in flow.links:
                flow.links = (*flow.links, link)
                link.flows[flow] = flow.counted.count(link.id)
        self._changed[link.id] = link
        capacity = bytes_per_s / PS_PER_S
        taken = self._taken.get(link)
        if taken is not None:
            taken.whole = capacity
            capacity = max(capacity - taken.rate, 0.0)
        self._reschedule(self.maxmin.change(link, capacity))

    def occupy(self, link: Link, bytes_per_s: float) -> None:
        """Let bytes that are no flow's cross a link at this rate from now on, in place of those before.

        They count as carried, and flows share what they leave, which must be something: only a link that
        has failed meanwhile may have nothing left.
        """
        taken = self._taken.get(link)
        if taken is None:
            taken = self._taken[link] = Taken(link.capacity, self.clock.now)
        self._book_taken(link, taken)
        rate = bytes_per_s / PS_PER_S
        if rate != taken.rate:
            left = taken.whole - rate
            if left <= 0.0 and link.id not in self._changed:
                raise SimulationError(f"link {link.id} is asked for {rate} of {taken.whole} bytes/ps")
            taken.rate = rate
            self._reschedule(self.maxmin.change(link, max(left, 0.0)))

    def carry(self, link: Link, size: float) -> None:
        """Count bytes that have crossed a link besides those of flows and of a rate that was told."""
        self.carried[link.id] += size

    def _book_taken(self, link: Link, taken: Taken) -> None:
        now = self.clock.now
        self.carried[link.id] += taken.rate * (now - taken.since_ps)
        taken.since_ps = now

    def settle(self) -> None:
        """Book what the flows on their way, and what is no flow, have moved so far."""
        now = self.clock.now
        for flow in self._flows:
            self._book(flow, min(flow.size - flow.left + flow.rate * (now - flow.updated_ps), flow.size))
        for link, taken in self._taken.items():
            self._book_taken(link, taken)

    def _book(self, flow: Flow, moved: float) -> None:
        fresh = moved - flow.booked
        flow.booked = moved
        carried = self.carried
        for link in flow.counted:
            carried[link] += fresh

    def _with_changed(self, path: Path) -> Path:
        """A path on which links whose capacity has changed take part in the sharing."""
        missing = [self._changed[i] for i in path.counted if i in self._changed]
        return path._replace(links=(*path.links, *(link for link in missing if link not in path.links)))

    def _reschedule(self, changed: dict[Flow, float]) -> None:
        """Account for what changed flows moved at their old rates, and move their ends."""
        now = self.clock.now
        for flow, old_rate in changed.items():
            if now > flow.updated_ps:
                if old_rate != flow.alone:
                    self._charge(flow, old_rate)
                flow.left = max(flow.left - old_rate * (now - flow.updated_ps), 0.0)
                flow.updated_ps = now
            flow.holder = flow.bottleneck
            ends_at_ps = now + ceil(flow.left / flow.rate) if flow.rate > 0.0 else FOREVER
            if flow.end is None:
                flow.end = self.clock.at(ends_at_ps, FLOW_END + flow.id)
                flow.end.callbacks.append(partial(self._end, flow))
            else:
                flow.end = self.clock.move(flow.end, ends_at_ps, FLOW_END + flow.id)

    def _end(self, flow: Flow, moment: Event) -> None:
        """Take a flow out, give its share to others, and tell those who wait for the transfer."""
        self.events += 1
        del self._flows[flow]
        self._book(flow, flow.size)
        if flow.rate != flow.alone:
            self._charge(flow, flow.rate)
        changed = self.maxmin.remove(flow)
        if changed:
            self._reschedule(changed)
        transfer = flow.transfer
        if transfer is None:
            moment._value = delivery(flow.holder, flow.waited)  # the others who wait are told after this
            return
        transfer.flows -= 1
        if not transfer.flows:
            transfer._value = delivery(flow.holder, flow.waited)
            transfer.fire()

    def _charge(self, flow: Flow, rate: float) -> None:
        """Charge the link that holds a flow back for what it fell behind since its last change."""
        assert flow.holder is not None
        link = flow.holder.id
        behind_ps = (self.clock.now - flow.updated_ps) * (1.0 - rate / flow.alone)
        self.waited_ps[link] += behind_ps
        if flow.waited is None:
            flow.waited = {link: behind_ps}
        else:
            flow.waited[link] = flow.waited.get(link, 0.0) + behind_ps
