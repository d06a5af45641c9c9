"""Wires between replicas, told twice: as the fabric of the engine, and as lists of link numbers."""

from types import SimpleNamespace

from models.heads import flows
from models.stepping import StepDelays, StepNetwork
from sim.network.maxmin import Link
from sim.network.path import Path


class OwnWires:
    """Every transfer has a link of its own, of one byte per picosecond, so its duration is its size."""

    is_fixed = False
    queue_pairs = 1

    def __init__(self, latency_ps):
        self.latency_ps = latency_ps
        self.links = self.described = []
        self.table = SimpleNamespace(carried=[])

    def gpu_to_gpu(self, _source, _target, _queue_pair=0):
        return Path((Link(0, 1.0),), (), self.latency_ps)

    def gpu_to_dram(self, _source, _target=None):
        return Path((Link(0, 1.0),), (), self.latency_ps)

    def dram_to_gpu(self, _source, _target):
        return Path((Link(0, 1.0),), (), self.latency_ps)

    def wait_ps(self, _source, _target):
        return self.latency_ps

    def split(self, size, _source, _target, _kv_heads):
        return [(size, [0])], self.latency_ps

    def network(self, env):
        return StepDelays(env)


class SharedWires:
    """A link out of and into each port, one inside each node, and trunks that all nodes share.

    There is one trunk, or one for each queue pair; with several, paths are asked for anew every time, and
    queue pairs carry equal shares, or take from what is left and have trunks of uneven width.
    Capacities are primes over 1024: exact as floats, and sizes and times never come out even by chance.
    """

    PRIMES = (1009, 1031, 1061, 1093, 1123, 1151, 1181, 1213, 1231, 1279, 1301, 1327, 1381, 1433, 1483, 1511)

    def __init__(self, nodes, groups, latency_ps, trunk, queue_pairs=1, is_pooled=False):
        self.groups = groups
        self.latency_ps = latency_ps
        self.queue_pairs = queue_pairs
        self.is_fixed = queue_pairs == 1
        self.is_pooled = is_pooled
        self.inside = 2 * nodes * groups
        self.trunks = self.inside + nodes
        self.capacities = [self.PRIMES[(7 * i) % len(self.PRIMES)] / 1024 for i in range(self.trunks)]
        uneven = [2 * pair + 1 if is_pooled else queue_pairs for pair in range(queue_pairs)]
        self.capacities += [trunk * part / queue_pairs**2 for part in uneven]
        self.links = self.described = [Link(i, capacity) for i, capacity in enumerate(self.capacities)]
        self.table = SimpleNamespace(carried=[0.0] * len(self.links))

    def numbers(self, source, target, queue_pair):
        if source.node == target.node:
            return [self.inside + source.node]
        out = 2 * (source.node * self.groups + source.group)
        into = 2 * (target.node * self.groups + target.group) + 1
        return [out, self.trunks + queue_pair, into]

    def gpu_to_gpu(self, source, target, queue_pair=0):
        numbers = self.numbers(source, target, queue_pair)
        return Path(tuple(self.links[i] for i in numbers), tuple(numbers), self.latency_ps)

    def pairs(self, source, target):
        return range(1 if source == target else self.queue_pairs)

    def wait_ps(self, _source, _target):
        return self.latency_ps

    def split(self, size, source, target, kv_heads):
        """Parts (bytes, paths) for each pair of ports and queue pair; ranks that share a port send as one."""
        shares = {}
        for (sender, receiver), part in flows(len(source.ports), len(target.ports), kv_heads).items():
            ports = source.ports[sender], target.ports[receiver]
            shares[ports] = shares.get(ports, 0) + part * size
        parts = []
        for (sender, receiver), share in shares.items():
            count = 1 if sender.node == receiver.node else self.queue_pairs
            paths = [self.numbers(sender, receiver, queue_pair) for queue_pair in range(count)]
            if self.is_pooled:
                parts.append((share, paths))
                continue
            for path in paths:
                part = share / count
                assert part.denominator == 1, "choose sizes that can be dealt out whole"
                parts.append((part.numerator, [path]))
        return parts, self.latency_ps

    def network(self, env):
        return StepNetwork(env, self.capacities)
