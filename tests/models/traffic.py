"""Transfers over a fabric on a clock, played event by event; drawn at random, or given."""

from sim.clock import FLOW_START, Clock
from sim.network.fabric import Port
from sim.network.flows import FlowNetwork
from sim.network.maxmin import Link
from sim.network.path import Path


class Unpruned:
    """A fabric whose paths keep every link that they cross."""

    def __init__(self, fabric):
        self.fabric = fabric
        self.table, self.links, self.groups = fabric.table, fabric.links, fabric.groups

    def gpu_to_gpu(self, source, target):
        path = self.fabric.gpu_to_gpu(source, target)
        return Path(tuple(self.links[i] for i in path.counted), path.counted, path.latency_ps)


class Traffic:
    """Transfers over a fabric on a clock; `ends` are instants by number of the transfer."""

    def __init__(self, fabric):
        self.fabric = fabric
        self.clock = Clock()
        self.network = FlowNetwork(self.clock, fabric.table.carried)
        self.ends = {}
        self.sent = {}
        self.caps = {}

    def send_at(self, start_ps, number, parts, cap=None):
        """Send (bytes, source port, target port) parts, each with a cap of its own where there is one."""

        def start(_):
            flows = [(size, self.capped(number, self.fabric.gpu_to_gpu(*ends), cap)) for size, *ends in parts]
            for size, path in flows:
                for link in path.counted:
                    self.sent[link] = self.sent.get(link, 0) + size
            self.network.send(flows).callbacks.append(lambda _: self.ends.setdefault(number, self.clock.now))

        self.clock.at(start_ps, FLOW_START + number).callbacks.append(start)

    def capped(self, number, path, cap):
        if cap is None:
            return path
        own = Link(10**6 + number, cap)
        self.caps[own] = cap
        return Path((*path.links, own), path.counted, path.latency_ps)

    def flows(self):
        """All flows on their way."""
        return list({flow: None for link in (*self.fabric.links, *self.caps) for flow in link.flows})

    def play(self):
        """Let everything happen one event at a time; yields the instants (from, to) around each pause."""
        before = self.clock.now
        while self.clock._queue:
            then = self.clock._queue[0][0]
            if then > before:
                yield before, then
                before = then
            self.clock.advance(1)

    def finish(self):
        while self.clock.advance(1000):
            pass
        return self.ends


def transfers(dice, count, senders, receivers, groups=1, gap_ps=4 * 10**9):
    """Transfers drawn as (start, parts), some together with the one before, most of them on all lanes."""
    start_ps, found = 0, []
    for _ in range(count):
        start_ps += dice.choice((0, gap_ps // 7, gap_ps, 2 * gap_ps + dice.randrange(gap_ps)))
        source = dice.choice(senders)
        target = dice.choice([node for node in receivers if node != source])
        size = 8 * dice.randint(10**5, 10**8)
        used = range(groups) if dice.random() < 0.7 else [dice.randrange(groups)]
        parts = [(size // len(used), Port(source, group), Port(target, group)) for group in used]
        found.append((start_ps, parts))
    return found


def finished(fabric, found, change=lambda _: None):
    """When transfers end on a fabric, with something done to it before."""
    traffic = Traffic(fabric)
    change(traffic)
    for number, (start_ps, parts) in enumerate(found):
        traffic.send_at(start_ps, number, parts)
    ends = traffic.finish()
    return [ends[number] for number in range(len(found))]
