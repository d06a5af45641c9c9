"""A flow network on a bench: links by hand, transfers at given instants, one event at a time."""

from sim.clock import FLOW_START, Clock
from sim.network.flows import FlowNetwork
from sim.network.maxmin import Link
from sim.network.parts import Pooled
from sim.network.path import Cap, Path

CAPS = 90
"""The number under which what caps a flow is blamed."""


class Bench:
    """A flow network on a clock, with transfers of one flow that start at given instants."""

    def __init__(self, *capacities):
        self.clock = Clock()
        self.links = [Link(i, float(capacity)) for i, capacity in enumerate(capacities)]
        self.network = FlowNetwork(self.clock, [0.0] * len(self.links))
        self.ends = {}
        self.log = []
        self.told = {}

    def path(self, numbers, cap=None):
        links = tuple(self.links[i] for i in numbers)
        return Path(links, tuple(numbers), 0, None if cap is None else Cap(CAPS, cap))

    def part(self, size, numbers, cap=None):
        """A part over one path, or over several that take from what is left; each has the cap."""
        if isinstance(numbers[0], int):
            return size, self.path(numbers, cap)
        return size, Pooled(tuple(self.path(one, cap) for one in numbers))

    def send_at(self, start_ps, number, *parts):
        """Send (bytes, link numbers) or (bytes, link numbers, cap) parts.

        Several lists of numbers are queue pairs that take from what is left. The end goes to `ends[number]`
        and to `log`, what sharing cost to `told[number]`.
        """

        def end(event):
            self.told[number] = tuple(event._value)[:2]
            self.ends[number] = self.clock.now
            self.log.append(number)

        def start(_):
            whole = self.network.send([self.part(*part) for part in parts])
            whole.callbacks.append(end)

        self.clock.at(start_ps, FLOW_START + number).callbacks.append(start)

    def play(self):
        """Let everything happen, one event at a time; yields between instants (from, to)."""
        before = self.clock.now
        while self.clock._queue:
            then = self.clock._queue[0][0]
            if then > before:
                yield before, then
                before = then
            self.clock.advance(1)

    def finish(self):
        for _ in self.play():
            pass
        return self.ends
