"""What the collectives of a replica put on its NICs while it works, where it leaves its NVLink domain.

Model: for every all-reduce of S bytes among d domains the NICs of each send f(d) x S bytes, and receive
as many (sim.timing.collective). Each rank sends its own share on its own lane. While a batch runs its bytes
cross at an even rate, those of the batch over its duration; flows get the rest of the NICs. Every byte is
counted as carried. A batch is never shorter than its collectives need at the full rate of the NICs, so
something is always left.
Ignores: bursts (collectives are short, at full rate, and alternate with compute), handoffs that slow the
collectives down in turn, the switches between the NICs of a replica, and host memory without GPUDirect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sim.clock import Clock
from sim.network.fabric import Fabric
from sim.network.flows import FlowNetwork
from sim.network.maxmin import Link
from sim.serving.plan import Seat
from sim.tables.schema import PS_PER_S


class Background:
    """The collectives of one replica: its NICs, and what they carry now."""

    __slots__ = ("_bytes_per_ps", "_clock", "_links", "_network", "_since_ps")

    def __init__(self, network: FlowNetwork, links: Sequence[tuple[Link, float]]) -> None:
        """`links` are those of its NICs, each with its part of the bytes of its domain."""
        self._network = network
        self._clock: Clock = network.clock
        self._links = links
        self._bytes_per_ps = 0.0
        self._since_ps = 0

    def begin(self, size: float, duration_ps: int) -> None:
        """A batch begins that sends so many bytes out of each domain."""
        self._since_ps = self._clock.now
        self._occupy(size / duration_ps if duration_ps else 0.0)

    def end(self, size: float) -> None:
        """The batch ends, and has sent so many bytes; one cut short has sent more than its even share."""
        rest = size - self._bytes_per_ps * (self._clock.now - self._since_ps)
        for link, part in self._links:
            self._network.carry(link, rest * part)

    def rest(self) -> None:
        """No other batch follows for now."""
        self._occupy(0.0)

    def _occupy(self, bytes_per_ps: float) -> None:
        if bytes_per_ps != self._bytes_per_ps:
            self._bytes_per_ps = bytes_per_ps
            for link, part in self._links:
                self._network.occupy(link, bytes_per_ps * part * PS_PER_S)


def background(fabric: Fabric, network: FlowNetwork, seat: Seat) -> Background:
    """The collectives of a replica at a seat that reaches over several NVLink domains."""
    cluster = fabric.cluster
    ranks = Counter(seat.ports)
    gpus = Counter(cluster.domain_of(port.node) for port in seat.ports)
    links = [
        (link, ranks[port] / gpus[cluster.domain_of(port.node)])
        for port in seat.places
        for link in fabric.nic_links(port)
    ]
    return Background(network, links)
