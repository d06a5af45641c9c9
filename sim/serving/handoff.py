"""The handoff: a computed prompt's KV moves from its prefill replica to a decode replica.

Model: when the prompt is computed, or where it is streamed (sim.serving.stream) when it begins to be, a
decode replica is chosen and KV memory for the whole sequence is reserved there; then, or once the first layer
is computed, the KV of the whole prompt crosses the fabric, each rank's share on its own rail; when the last
byte is there the prefill side lets its blocks go and the sequence may join the batch.
A transfer is one flow for each pair of
ports (lanes of a node) that have something to exchange; see sim.network.reshard for who sends what to whom.
What an engine takes to start a transfer and to notice its end comes before the bytes, as latency does.
Ignores: the way back of the acknowledgement.
"""

from __future__ import annotations

from collections.abc import Generator
from fractions import Fraction

from simpy import Event

from sim.clock import FLOW_START, Clock, Errand
from sim.network.fabric import Fabric
from sim.network.flows import FlowNetwork
from sim.network.parts import Part, dealt
from sim.network.reshard import shares
from sim.network.waiting import Delivery
from sim.serving.decode import DecodePool
from sim.serving.job import UNFINISHED, Job
from sim.serving.plan import Seat, ServingPlan
from sim.serving.prefill import PrefillPool
from sim.serving.stream import capped, production
from sim.tables.schema import NOT_YET

Exchange = tuple[int, int, Fraction]
"""A place of the sender, one of the receiver, and the part of one copy of the KV that moves between them."""


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
        self.kv_bytes = plan.kv_bytes
        senders = [replica.seat.ranks for replica in prefill.replicas]
        receivers = [replica.seat.ranks for replica in decode.replicas]
        self.first_token_by_prefill = plan.first_token_by_prefill
        self.layers = plan.kv.layers
        self.start_ps, self.token_ps = plan.handoff_start_ps, plan.handoff_token_ps
        self.production = production(fabric) if plan.kv.streams else NOT_YET
        self._exchanges = {
            (one, other): [
                (*places, part.numerator, part.denominator)
                for *places, part in exchange(one, other, plan.kv_heads)
            ]
            for one in set(senders)
            for other in set(receivers)
        }

    def is_needed(self, job: Job) -> bool:
        """Whether a prompt's KV moves at all: not where its prefill gives the only token."""
        return not (self.first_token_by_prefill and job.request.output_tokens == 1)

    def begin(self, job: Job, from_ps: int = 0, computed_ps: int = 0) -> None:
        """Start to move a prompt: its first layer is computed at one instant, all of it at another."""
        Errand(self.move(job, from_ps, computed_ps))

    def move(self, job: Job, from_ps: int, computed_ps: int) -> Generator[Event, Delivery, None]:
        """Reserve, wait out the latency, send, release, join."""
        clock = self.clock
        source = self.prefill.replicas[job.prefill_replica]
        if job.reserved_ps == NOT_YET:
            granted = self.decode.assign(job).reserve(job)
            if granted is not None:
                yield granted
            job.reserved_ps = clock.now
        target = self.decode.replicas[job.decode_replica]
        parts = self._parts(job, source.seat, target.seat) if self.fabric.is_fixed else []
        if len(parts) == 1:
            latency_ps = parts[0][1].latency_ps
        else:
            latency_ps = self._latency_ps(parts, source.seat, target.seat)
        latency_ps += self.start_ps + round(self.token_ps * job.request.input_tokens)
        yield clock.at(max(clock.now, from_ps) + latency_ps, FLOW_START + job.request.id)
        parts = parts or self._parts(job, source.seat, target.seat)
        if clock.now < computed_ps:
            job.streamed_ps = clock.now
            parts, links = capped(parts, computed_ps - clock.now, self.layers, self.production)
            job.capped = (*job.capped, *links)
        sent = self.network.send(parts)
        job.transfer_link, job.transfer_waited_ps, _ = yield sent
        job.kv_arrived_ps = clock.now
        source.release(job)
        if job.status == UNFINISHED:
            target.join(job)
        else:  # its user has left meanwhile
            target.let_go(job)

    def _latency_ps(self, parts: list[Part], source: Seat, target: Seat) -> int:
        """The longest latency of the parts, which may not have found their ways yet."""
        if parts:
            return max(way.latency_ps for _, way in parts)
        exchanges = self._exchanges[source.ranks, target.ranks]
        wait_ps = self.fabric.wait_ps
        return max(wait_ps(source.places[one], target.places[other]) for one, other, _, _ in exchanges)

    def _parts(self, job: Job, source: Seat, target: Seat) -> list[Part]:
        """Give what moves a prompt's KV: bytes and way of each part."""
        size = self.kv_bytes(job.request.input_tokens)
        fabric, path = self.fabric, self.fabric.gpu_to_gpu
        senders, receivers = source.places, target.places
        exchanges = self._exchanges[source.ranks, target.ranks]
        if fabric.queue_pairs == 1:
            return [
                (size * part // whole, path(senders[sender], receivers[receiver]))
                for sender, receiver, part, whole in exchanges
            ]
        parts: list[Part] = []
        for sender, receiver, part, whole in exchanges:
            one, other = senders[sender], receivers[receiver]
            paths = [path(one, other, pair) for pair in fabric.pairs(one.node, other.node)]
            parts += dealt(size * part // whole, paths, fabric.is_pooled)
        return parts


def exchange(source: tuple[int, ...], target: tuple[int, ...], heads: int) -> tuple[Exchange, ...]:
    """Which place of a sender gives which part of the KV to which place of a receiver.

    `source` and `target` say for each rank at which place it is; ranks at one place send together.
    """
    parts: dict[tuple[int, int], Fraction] = {}
    for sender, receiver, part in shares(len(source), len(target), heads):
        places = (source[sender], target[receiver])
        parts[places] = parts.get(places, Fraction(0)) + part
    return tuple((*places, part) for places, part in parts.items())
