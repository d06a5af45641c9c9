"""Transfers in time: flows that start, share links max-min fairly, and end.

Model: a flow of B bytes ends when the integral of its rate reaches B; the end is rounded up to a whole
picosecond. Its end is a scheduled event; when its rate changes what it has moved is worked out and the end
moves. A pooled flow does so when the rate of any of its queue pairs changes; each link counts what its own
queue pair has moved.
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
from typing import cast

from simpy import Event

from sim.base.errors import SimulationError
from sim.clock import FLOW_END, FOREVER, Clock, Moment
from sim.network.flow import Draw, Flow, Pace, Transfer, pooled
from sim.network.maxmin import Link, MaxMin
from sim.network.parts import Part, Pooled
from sim.network.path import Path
from sim.network.waiting import Delivery, delivery, foresee, rate_alone, rates_alone
from sim.tables.schema import NOT_YET, PS_PER_S


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
    `waited_ps[link]` what the link has cost transfers, each charged when its rate changes and when it ends
    (a paced one when it no longer is);
    `events` counts starts and ends.
    """

    def __init__(self, clock: Clock, carried: list[float]) -> None:
        self.clock = clock
        self.maxmin: MaxMin[Flow | Draw] = MaxMin()
        self.carried = carried
        self.waited_ps: defaultdict[int, float] = defaultdict(float)
        self.events = 0
        self._flows: dict[Flow | Draw, None] = {}
        self._pooled = 0
        self._changed: dict[int, Link] = {}
        self._taken: dict[Link, Taken] = {}
        self._next_id = 0

    @property
    def active(self) -> int:
        """Flows on their way; each queue pair of a pooled one counts."""
        return len(self._flows)

    def send(self, parts: Sequence[Part]) -> Moment:
        """Begin to move parts, each (bytes, way), now; the event happens when all of them have arrived.

        Its value is a Delivery. Yield it at once: that of a single part is put in another's place when its
        rate changes.
        """
        if len(parts) > 1:
            return self.send_whole(parts)
        size, way = parts[0]
        if isinstance(way, Path) and way.cap is None and not self._changed:
            return self._start(size, way, rate_alone(way.links), None)
        return self._start_parts(parts, None)

    def send_whole(self, parts: Sequence[Part]) -> Transfer:
        """Like `send`, but the event stays the same, and the transfer can be broken off."""
        transfer = Transfer(self.clock, len(parts))
        size, way = parts[0]
        if len(parts) == 1 and isinstance(way, Path) and way.cap is None and not self._changed:
            self._start(size, way, rate_alone(way.links), transfer)
        else:
            self._start_parts(parts, transfer)
        return transfer

    def _start_parts(self, parts: Sequence[Part], transfer: Transfer | None) -> Moment:
        """Start the flows of some parts; the end of the last of them."""
        parts = [(size, way.of_a_flow()) for size, way in parts]
        if self._changed:
            parts = [(size, self._with_changed(way)) for size, way in parts]
        foresee(parts)
        rates = iter(rates_alone(parts))
        for size, way in parts:
            if isinstance(way, Path):
                end = self._start(size, way, next(rates), transfer)
            else:
                end = self._start_pooled(size, [(path, next(rates)) for path in way.paths], transfer)
        return end

    def _start(self, size: int, path: Path, alone: float, transfer: Transfer | None) -> Moment:
        flow = Flow(self._next_id, size, path, transfer, self.clock.now)
        flow.alone = alone
        if type(path.links[-1]) is Pace:
            flow.paces = 1
        self._next_id += 1
        self.events += 1
        self._flows[flow] = None
        changed = self.maxmin.add(flow)
        changed.pop(flow, None)
        if changed:
            self._reschedule(changed)
        return self._schedule(flow)

    def _start_pooled(
        self, size: int, ways: Sequence[tuple[Path, float]], transfer: Transfer | None
    ) -> Moment:
        flow = pooled(self._next_id, size, ways, self.clock.now)
        flow.transfer = transfer
        flow.paces = sum([type(path.links[-1]) is Pace for path, _ in ways])
        self._next_id += 1
        self._pooled += 1
        changed: dict[Flow | Draw, float] = {}
        for draw in flow.draws:
            self.events += 1
            self._flows[draw] = None
            changed = self.maxmin.add(draw) | changed
        self._reschedule({one: rate for one, rate in changed.items() if one not in flow.draws})
        flow.gather(self.clock.now)
        return self._schedule(flow)

    def _schedule(self, flow: Flow) -> Moment:
        """Let a flow that begins end when it has moved all, or never over a link that has failed."""
        if flow.draws:
            flow.turn()
        else:
            flow.holder = flow.bottleneck
        clock = self.clock
        end = Moment(clock) if flow.paces else clock.at(self._ends_at_ps(flow), FLOW_END + flow.id)
        end.callbacks.append(partial(self._end, flow))
        flow.end = end
        return end

    def _ends_at_ps(self, flow: Flow) -> int:
        return self.clock.now + ceil(flow.left / flow.rate) if flow.rate > 0.0 else FOREVER

    def lift(self, link: Pace) -> None:
        """Let a flow go on without what paced it: all its bytes are there now."""
        one = next(iter(link.flows), None)
        if one is None:
            return
        flow = one.flow if isinstance(one, Draw) else one
        self._reschedule({one: one.rate} | self.maxmin.free(one, link))
        flow.paces -= 1
        alone = link.alone or rate_alone(one.links)
        if isinstance(one, Draw):
            one.alone = alone
            alone = sum([draw.alone for draw in flow.draws])
        self._hurry(flow, alone)
        if not flow.paces:
            assert flow.end is not None
            flow.end = self.clock.move(flow.end, self._ends_at_ps(flow), FLOW_END + flow.id)

    def _hurry(self, flow: Flow, alone: float) -> None:
        """From now on a flow would have another rate alone: what it is behind takes so much less time.

        As long as it is paced nobody knows how much, and links are not charged.
        """
        waited, scale = flow.waited or {}, flow.alone / alone
        flow.alone = alone
        for link in waited:
            waited[link] *= scale
            if not flow.paces:
                self.waited_ps[link] += waited[link]

    def cancel(self, transfer: Transfer) -> None:
        """Break a transfer off: what has not moved does not, and whoever waits for it is told at once."""
        members = [one.flow if isinstance(one, Draw) else one for one in self._flows]
        for flow in [flow for flow in dict.fromkeys(members) if flow.transfer is transfer]:
            assert flow.end is not None
            flow.end.callbacks = []
            if flow.draws:
                changed = self._leave_pooled(flow)
            else:
                moved = flow.rate * (self.clock.now - flow.updated_ps)
                self._book(flow, min(flow.size - flow.left + moved, flow.size))
                del self._flows[flow]
                self.events += 1
                changed = self.maxmin.remove(flow)
            self._reschedule(changed)
        transfer._value = Delivery(NOT_YET, 0, is_broken=True)
        transfer.fire()

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
            if isinstance(flow, Draw):
                self._book(flow, flow.moved_by(now))
            else:
                self._book(flow, min(flow.size - flow.left + flow.rate * (now - flow.updated_ps), flow.size))
        for link, taken in self._taken.items():
            self._book_taken(link, taken)

    def _book(self, flow: Flow | Draw, moved: float) -> None:
        fresh = moved - flow.booked
        flow.booked = moved
        carried = self.carried
        for link in flow.counted:
            carried[link] += fresh

    def _with_changed(self, way: Path | Pooled) -> Path | Pooled:
        """A way on which links whose capacity has changed take part in the sharing."""
        if isinstance(way, Pooled):
            return Pooled(tuple(self._path_with_changed(path) for path in way.paths))
        return self._path_with_changed(way)

    def _path_with_changed(self, path: Path) -> Path:
        missing = [self._changed[i] for i in path.counted if i in self._changed]
        own = path.links  # what paces a flow stays the last of them
        return path._replace(links=(*(link for link in missing if link not in own), *own))

    def _reschedule(self, changed: dict[Flow | Draw, float]) -> None:
        """Account for what changed flows moved at their old rates, and move their ends."""
        flows = self._gathered(changed) if self._pooled else cast("dict[Flow, float]", changed)
        now = self.clock.now
        for flow, old_rate in flows.items():
            since_ps = now - flow.updated_ps
            if since_ps:
                if old_rate != flow.alone:
                    self._charge(flow, old_rate)
                left = flow.left - old_rate * since_ps
                flow.left = left if left > 0.0 else 0.0
                flow.updated_ps = now
            if flow.draws:
                flow.turn()
            else:
                flow.holder = flow.bottleneck
            if not flow.paces:
                assert flow.end is not None
                flow.end = self.clock.move(flow.end, self._ends_at_ps(flow), FLOW_END + flow.id)

    def _gathered(self, changed: dict[Flow | Draw, float]) -> dict[Flow, float]:
        """The changed flows with their old rates, pooled ones in place of their queue pairs."""
        now = self.clock.now
        flows: dict[Flow, float] = {}
        for one, old_rate in changed.items():
            if isinstance(one, Flow):
                flows[one] = old_rate
            elif one.flow not in flows:
                flows[one.flow] = one.flow.gather(now)
        return flows

    def _end(self, flow: Flow, moment: Event) -> None:
        """Take a flow out, give its share to others, and tell those who wait for the transfer."""
        if flow.rate != flow.alone:
            self._charge(flow, flow.rate)
        if flow.draws:
            changed = self._leave_pooled(flow)
        else:
            self.events += 1
            del self._flows[flow]
            self._book(flow, flow.size)
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

    def _leave_pooled(self, flow: Flow) -> dict[Flow | Draw, float]:
        now = self.clock.now
        changed: dict[Flow | Draw, float] = {}
        for draw in flow.draws:
            self.events += 1
            del self._flows[draw]
            self._book(draw, draw.moved_by(now))
            changed = self.maxmin.remove(draw) | changed
        self._pooled -= 1
        return {one: rate for one, rate in changed.items() if isinstance(one, Flow) or one.flow is not flow}

    def _charge(self, flow: Flow, rate: float) -> None:
        """Charge the links that hold a flow back for what it fell behind since its last change."""
        behind_ps = (self.clock.now - flow.updated_ps) * (1.0 - rate / flow.alone)
        if flow.draws:
            for link, part in flow.blame():
                self._note(flow, link, behind_ps * part)
        else:
            assert flow.holder is not None
            self._note(flow, flow.holder.id, behind_ps)

    def _note(self, flow: Flow, link: int, behind_ps: float) -> None:
        if not flow.paces:
            self.waited_ps[link] += behind_ps
        if flow.waited is None:
            flow.waited = {link: behind_ps}
        else:
            flow.waited[link] = flow.waited.get(link, 0.0) + behind_ps
