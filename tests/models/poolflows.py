"""Flows of a pool, some paced, some broken off: all rates computed anew at each event, in exact fractions."""

from fractions import Fraction

from models.filling import fair_rates
from models.stepping import FLOW_END


class Moving:
    """What is left of a flow on a path of link numbers, and the rate at which it is made, if it still is."""

    def __init__(self, number, size, path, pace, whole):
        self.number = number
        self.left = Fraction(size)
        self.path = list(path)
        self.pace = pace
        self.whole = whole


class PoolFlows:
    """Flows over the links of some hosts. A transfer is an event, whose value says whether it has arrived."""

    def __init__(self, env, hosts):
        self.env = env
        self.hosts = hosts
        self.flows = []
        self.known = []
        self.started = 0
        self.settled = 0
        self.version = 0

    def capacities(self):
        return [Fraction(link.capacity) for link in self.hosts.table.solver]

    def crossing(self, link):
        """How many flows cross a link now."""
        return sum(link in flow.path for flow in self.flows)

    def send(self, parts):
        """Begin to move (bytes, path, pace or None) parts."""
        arrived = self.env.event()
        self.settle()
        for size, path, pace in parts:
            self.flows.append(Moving(self.started, size, path, pace, arrived))
            self.started += 1
        self.plan_ends()
        return arrived

    def lift(self, whole):
        """Everything is made."""
        self.settle()
        for flow in self.flows:
            if flow.whole is whole:
                flow.pace = None
        self.plan_ends()

    def cancel(self, whole):
        self.settle()
        self.flows = [flow for flow in self.flows if flow.whole is not whole]
        self.plan_ends()
        whole.succeed(False)

    def rates(self):
        """Of all flows, as long as none comes or goes."""
        capacities, paths = self.capacities(), []
        for flow in self.flows:
            path = list(flow.path)
            if flow.pace is not None:
                path.append(len(capacities))
                capacities.append(Fraction(flow.pace))
            paths.append(path)
        return fair_rates(paths, capacities)

    def settle(self):
        for flow, rate in zip(self.flows, self.known, strict=True):
            flow.left = max(flow.left - rate * (self.env.now - self.settled), 0)
        self.settled = self.env.now

    def plan_ends(self):
        """Let a process wait for the end of each flow, as things are now."""
        self.version += 1
        self.known = self.rates()
        for flow, rate in zip(self.flows, self.known, strict=True):
            if flow.pace is None:
                self.env.process(self.end(flow, self.env.now + -(-flow.left // rate), self.version))

    def end(self, flow, instant, version):
        yield self.env.at(instant, FLOW_END + flow.number)
        if version != self.version:
            return
        self.settle()
        self.flows.remove(flow)
        if not any(other.whole is flow.whole for other in self.flows):
            flow.whole.succeed(True)
        self.plan_ends()
