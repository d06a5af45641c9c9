"""The handoff: a computed prompt's KV moves from its prefill replica to a decode replica.

Model: source first. When the prompt is computed a decode replica is chosen and KV memory for the whole
sequence is reserved there; then the KV of the whole prompt crosses the fabric, each rank's share on its own
rail; when the last byte is there the prefill side lets its blocks go and the sequence may join the batch.
A transfer is one flow for each pair of
ports (lanes of a node) that have something to exchange; see sim.network.reshard for who sends what to whom.
Ignores: the way back of the acknowledgement, and the start-up cost of a transfer beside link latency.
"""

from __future__ import annotations

from collections.abc import Generator
from fractions import Fraction

from simpy import Event

from sim.clock import FLOW_START, Clock, Errand
from sim.network.fabric import Fabric
from sim.network.flows import FlowNetwork
from sim.network.path import Path
from sim.network.reshard import shares
from sim.serving.decode import DecodePool
from sim.serving.job import Job
from sim.serving.plan import Seat, ServingPlan
from sim.serving.prefill import PrefillPool


class Handoff:
    """Moves jobs from the prefill pool to the decode pool, one errand for each."""

    def __init__(
        self,
        prefill: PrefillPool,
        decode: DecodePool,
        fabric: Fabric,
        network: FlowNetwork,
        plan: ServingPlan,
    ) -> None:
        self.clock: Clock = prefill.clock
        self.prefill = prefill
        self.decode = decode
        self.fabric = fabric
        self.network = network
        self.token_bytes = plan.kv_bytes_per_token
        self.kv_heads = plan.kv_heads
        self._exchanges: dict[tuple[tuple[int, ...], tuple[int, ...]], list[tuple[int, int, int, int]]] = {}

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
        """Give the flows that move a prompt's KV: bytes and path of each."""
        size = job.request.input_tokens * self.token_bytes
        path, senders, receivers = self.fabric.gpu_to_gpu, source.places, target.places
        pairs = self.fabric.queue_pairs
        parts = []
        for sender, receiver, numerator, denominator in self._exchange(source.ranks, target.ranks):
            share = size * numerator // denominator
            if pairs == 1:
                parts.append((share, path(senders[sender], receivers[receiver])))
                continue
            each, rest = divmod(share, pairs)
            parts += [
                (each + (pair < rest), path(senders[sender], receivers[receiver], pair))
                for pair in range(pairs)
            ]
        return parts

    def _exchange(self, source: tuple[int, ...], target: tuple[int, ...]) -> list[tuple[int, int, int, int]]:
        """Which place of the sender gives which part (as a fraction) to which place of the receiver.

        Ranks at the same place send together.
        """
        exchange = self._exchanges.get((source, target))
        if exchange is None:
            parts: dict[tuple[int, int], Fraction] = {}
            for sender, receiver, part in shares(len(source), len(target), self.kv_heads):
                places = (source[sender], target[receiver])
                parts[places] = parts.get(places, Fraction(0)) + part
            exchange = self._exchanges[source, target] = [
                (*places, part.numerator, part.denominator) for places, part in parts.items()
            ]
        return exchange
