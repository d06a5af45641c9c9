"""Wires between replicas, told twice: as paths for the engine, and as lists of link numbers."""

from models.stepping import StepDelays, StepNetwork
from sim.network.maxmin import Link
from sim.network.path import Path


class OwnWires:
    """Every transfer has a link of its own, of one byte per picosecond, so its duration is its size."""

    def __init__(self, latency_ps):
        self.latency_ps = latency_ps
        self.links = []

    def path(self, _source, _target, _group):
        return Path((Link(0, 1.0),), (), self.latency_ps)

    def split(self, size, _source, _target):
        return [(size, [0])], self.latency_ps

    def network(self, env):
        return StepDelays(env)


class SharedWires:
    """A link out of and into each node and rail group, and one trunk that transfers between nodes share.

    Capacities are primes over 1024: exact as floats, and sizes and times never come out even by chance.
    """

    PRIMES = (1009, 1031, 1061, 1093, 1123, 1151, 1181, 1213, 1231, 1279, 1301, 1327, 1381, 1433, 1483, 1511)

    def __init__(self, nodes, groups, latency_ps, trunk):
        self.groups = groups
        self.latency_ps = latency_ps
        self.capacities = [
            self.PRIMES[(7 * i) % len(self.PRIMES)] / 1024 for i in range(2 * nodes * groups + nodes)
        ]
        self.inside = 2 * nodes * groups
        self.capacities.append(trunk)
        self.links = [Link(i, capacity) for i, capacity in enumerate(self.capacities)]

    def numbers(self, source, target, group):
        if source == target:
            return [self.inside + source]
        out = 2 * (source * self.groups + group)
        into = 2 * (target * self.groups + group) + 1
        return [out, len(self.capacities) - 1, into]

    def path(self, source, target, group):
        numbers = self.numbers(source, target, group)
        return Path(tuple(self.links[i] for i in numbers), tuple(numbers), self.latency_ps)

    def split(self, size, source, target):
        parts = []
        for i, group in enumerate(target.groups):
            share = size // len(target.groups) + (1 if i < size % len(target.groups) else 0)
            parts.append((share, self.numbers(source.node, target.node, group)))
        return parts, self.latency_ps

    def network(self, env):
        return StepNetwork(env, self.capacities)
