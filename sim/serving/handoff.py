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

from sim.clock import FLOW_START, Clock, Errand
from sim.network.fabric import Fabric
from sim.network.flows import FlowNetwork
from sim.network.path import Path
from sim.serving.decode import DecodePool
from sim.serving.job import Job
from sim.serving.plan import Seat
from sim.serving.prefill import PrefillPool


class Handoff:
    """Moves jobs from the prefill pool to the decode pool, one errand for each."""

    def __init__(
        self, prefill: PrefillPool, decode: DecodePool, fabric: Fabric, network: FlowNetwork, token_bytes: int
    ) -> None:
        self.clock: Clock = prefill.clock
        self.prefill = prefill
        self.decode = decode
        self.fabric = fabric
        self.network = network
        self.token_bytes = token_bytes

    def begin(self, job: Job) -> None:
        """Start to move a computed prompt."""
        Errand(self.move(job))

    def move(self, job: Job) -> Generator[Event, None, None]:
        """Reserve, wait out the latency, send, release, join."""
        clock = self.clock
        source = self.prefill.replicas[job.prefill_replica]
        target = self.decode.assign(job)
        granted = target.reserve(job)
        if granted is not None:
            yield granted
        job.reserved_ps = clock.now
        parts = self._parts(job, source.seat, target.seat)
        yield clock.at(clock.now + parts[0][1].latency_ps, FLOW_START + job.request.id)
        yield self.network.send(parts)
        job.kv_arrived_ps = clock.now
        source.release(job)
        target.join(job)

    def _parts(self, job: Job, source: Seat, target: Seat) -> list[tuple[int, Path]]:
        """One part for each rail group of the receiver; together they are the prompt's KV."""
        size = job.request.input_tokens * self.token_bytes
        path, groups = self.fabric.path, target.groups
        if len(groups) == 1:
            return [(size, path(source.node, target.node, groups[0]))]
        each, rest = divmod(size, len(groups))
        return [(each + (i < rest), path(source.node, target.node, group)) for i, group in enumerate(groups)]
