"""How far the replicas of a pool reach: over one NVLink domain, or over several and the NICs between them.

Model: GPUs in the same place of each domain form a ring, each over the NICs of its own lane. Its rate is that
of the port with the least for each of its GPUs, its latency the longest between neighbours of any replica of
the pool, since all replicas of a pool are timed alike. See sim.timing.collective.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from sim.network.fabric import Port
from sim.serving.plan import Seat
from sim.timing.collective import Wire
from sim.timing.placement import Span
from sim.topology.cluster import Cluster


def span(cluster: Cluster, seats: Sequence[Seat], width: int) -> Span:
    """The span of replicas at these seats; `width` is the number of rails in a lane."""
    ports = seats[0].ports
    domains = len(domains_of(cluster, seats[0]))
    gpus = len(ports) // domains
    if domains == 1:
        return Span(gpus)
    rate = min(
        cluster.rail_bytes_per_s(port.node) * width * gpus / ranks
        for each in seats
        for port, ranks in Counter(each.ports).items()
    )
    leaves = {pair for each in seats for pair in _neighbours(cluster, each.ports, gpus, width)}
    return Span(gpus, Wire(domains, rate, max(cluster.latency_ps(*pair) for pair in leaves)))


def domains_of(cluster: Cluster, seat: Seat) -> tuple[int, ...]:
    """The NVLink domains of a replica, in order."""
    return tuple(dict.fromkeys(cluster.domain_of(node) for node in seat.nodes))


def _neighbours(cluster: Cluster, ports: Sequence[Port], gpus: int, width: int) -> Iterator[tuple[int, int]]:
    """The leaves of each port and of its neighbour in the ring: the one in its place in the next domain."""
    for rank, port in enumerate(ports):
        other = ports[(rank + gpus) % len(ports)]
        yield (
            cluster.leaf_of(port.node, port.group * width),
            cluster.leaf_of(other.node, other.group * width),
        )
