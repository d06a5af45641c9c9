"""The handoff: a computed prompt's KV moves from its prefill replica to a decode replica.

Model: source first. When the prompt is computed a decode replica is chosen and KV memory for the whole
sequence is reserved there; then the KV of the whole prompt crosses the fabric, each rank's share on its own
rail; when the last byte is there the prefill side lets its blocks go and the sequence may join the batch.
A transfer is one flow for each rail group of the receiver.
Ignores: the way back of the acknowledgement, and the start-up cost of a transfer beside link latency.
"""

from __future__ import annotations

from collections.abc import Generator

from simpy import Event

from sim.clock import FLOW_START, Clock
from sim.network.fabric import Fabric
from sim.network.flows import FlowNetwork
from sim.serving.decode import DecodePool
from sim.serving.job import Job
from sim.serving.prefill import PrefillPool


class Handoff:
    """Moves jobs from the prefill pool to the decode pool, one SimPy process for each."""

    def __init__(
        self, prefill: PrefillPool, decode: DecodePool, fabric: Fabric, network: FlowNetwork, token_bytes: int
    ) -> None:
        self.clock: Clock = prefill.clock
        self.prefill = prefill
        self.decode = decode
        self.fabric = fabric
        self.network = network
        self.token_bytes = token_bytes
        self.under_way = 0

    def begin(self, job: Job) -> None:
        """Start to move a computed prompt."""
        self.clock.process(self.move(job))

    def move(self, job: Job) -> Generator[Event, None, None]:
        """Reserve, wait out the latency, send, release, join."""
        clock = self.clock
        source = self.prefill.replicas[job.prefill_replica]
        target = self.decode.assign(job)
        granted = target.reserve(job)
        if granted is not None:
            yield granted
        job.reserved_ps = clock.now
        self.under_way += 1
        groups = target.seat.groups
        path = self.fabric.path(source.seat.node, target.seat.node, groups[0])
        yield clock.at(clock.now + path.latency_ps, FLOW_START + job.request.id)
        for arrived in self._send(job, source.seat.node, target.seat.node, groups):
            yield arrived
        self.under_way -= 1
        job.kv_arrived_ps = clock.now
        source.release(job)
        target.join(job)

    def _send(self, job: Job, source: int, target: int, groups: tuple[int, ...]) -> list[Event]:
        """Start one flow for each rail group; together they carry the prompt's KV."""
        size = job.request.input_tokens * self.token_bytes
        each, rest = divmod(size, len(groups))
        events = []
        for i, group in enumerate(groups):
            path = self.fabric.path(source, target, group)
            events.append(self.network.start(each + (i < rest), path.links, path.counted))
        return events
