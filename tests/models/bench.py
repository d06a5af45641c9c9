"""A flow network on a bench: links by hand, transfers at given instants, one event at a time."""

from sim.clock import FLOW_START, Clock
from sim.network.flows import FlowNetwork
from sim.network.maxmin import Link
from sim.network.path import Path


class Bench:
    """A flow network on a clock, with transfers of one flow that start at given instants."""

    def __init__(self, *capacities):
        self.clock = Clock()
        self.links = [Link(i, float(capacity)) for i, capacity in enumerate(capacities)]
        self.network = FlowNetwork(self.clock, [0.0] * len(self.links))
        self.ends = {}
        self.log = []

    def path(self, numbers):
        return Path(tuple(self.links[i] for i in numbers), tuple(numbers), 0)

    def send_at(self, start_ps, number, *parts):
        """Send (bytes, link numbers) parts; the end goes to `ends[number]` and to `log`."""

        def end(_):
            self.ends[number] = self.clock.now
            self.log.append(number)

        def start(_):
            whole = self.network.send([(size, self.path(numbers)) for size, numbers in parts])
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
