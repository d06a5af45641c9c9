"""What pools and links were doing: samples over time, and use over the measured window.

Model: readings at equal intervals; a link's utilisation is what it carried in an interval over what it
could have, and that of a kind of link is over those of its links that anything has ever crossed. Use over
the window is the difference of the counters at its two ends.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass

from simpy import Event

from sim.clock import TIMER, Clock
from sim.serving.cluster import Serving
from sim.serving.colocatedreplica import ColocatedReplica
from sim.serving.decode import DecodeReplica
from sim.serving.kvuse import KvBooks, kv_pool_use
from sim.serving.prefill import PrefillReplica
from sim.serving.verifyingdecode import VerifyingDecodeReplica
from sim.tables.schema import PS_PER_S
from sim.tables.uses import KvPoolUse, LinkUse, ReplicaUse

LAST = (1 << 40) - 1
"""The id of the meter's timers: after all other timers of an instant."""


@dataclass(frozen=True, slots=True)
class Counters:
    """Counters of replicas, links and pool at one instant.

    Replicas are those of prefill, decode and colocated pools: busy time, requests, tokens, decode steps,
    sequences over all steps, sequences put aside, time of steps without prompts, how often memory ran out,
    sequences put aside to host memory, tokens that steps gave.
    """

    at_ps: int
    replicas: tuple[tuple[int, ...], ...]
    carried: tuple[float, ...]
    waited_ps: dict[int, float]
    kv: KvBooks | None


class Meter:
    """Reads a serving cluster while it runs: `sample` and `watch` are SimPy processes."""

    def __init__(self, clock: Clock, serving: Serving) -> None:
        self.clock = clock
        self.serving = serving
        self.peaks: dict[int, float] = {}
        self._carried: list[float] = []
        self._begin = self.read()
        self._end: Counters | None = None

    def sample(self, every_ps: int) -> Generator[Event, None, None]:
        """Write samples at equal intervals, until the workload is exhausted and everything is done."""
        clock, serving = self.clock, self.serving
        while not (serving.offered.processed and not serving.live):
            yield clock.at(clock.now + every_ps, TIMER + LAST)
            self._sample_pools()
            self._sample_links(every_ps)

    def watch(self, from_ps: int, until_ps: int | None) -> Generator[Event, None, None]:
        """Read the counters at both ends of the window; without an end, at the last arrival."""
        clock = self.clock
        yield clock.at(from_ps, TIMER + LAST)
        self._begin = self.read()
        yield clock.at(until_ps, TIMER + LAST) if until_ps is not None else self.serving.offered
        self._end = self.read()

    def read(self) -> Counters:
        """Read all counters now."""
        serving, now = self.serving, self.clock.now
        serving.network.settle()
        colocated = serving.colocated.replicas if serving.colocated is not None else []
        replicas: tuple[PrefillReplica | DecodeReplica | ColocatedReplica, ...]
        replicas = (*serving.prefill.replicas, *serving.decode.replicas, *colocated)
        return Counters(
            now,
            tuple(_counted(replica, now) for replica in replicas),
            tuple(serving.network.carried),
            dict(serving.network.waited_ps),
            KvBooks.of(serving.moves) if serving.moves is not None else None,
        )

    def window_ps(self) -> tuple[int, int]:
        """The window that use refers to: both its ends."""
        return self._begin.at_ps, (self._end or self.read()).at_ps

    def replica_uses(self) -> tuple[ReplicaUse, ...]:
        """What each replica did in the window."""
        end = self._end or self.read()
        plan = self.serving.plan
        plans = [pool for pool in (plan.prefill, plan.decode, plan.colocated) if pool is not None]
        places = [(plan, number) for plan in plans for number in range(len(plan.seats))]
        return tuple(
            ReplicaUse(
                id=number,
                name=f"{plan.name}-{number}",
                pool=plan.name,
                role=plan.role,
                gpus=plan.gpus_per_replica,
                busy_ps=after[0] - before[0],
                requests=after[1] - before[1],
                tokens=after[2] - before[2],
                gpu=plan.gpus[number] if plan.gpus else "",
                steps=after[3] - before[3],
                decoded=after[4] - before[4],
                preempted=after[5] - before[5],
                decoding_ps=after[6] - before[6],
                shortages=after[7] - before[7],
                swapped=after[8] - before[8],
                step_tokens=after[9] - before[9],
            )
            for (plan, number), before, after in zip(places, self._begin.replicas, end.replicas, strict=True)
        )

    def link_uses(self) -> tuple[LinkUse, ...]:
        """What each link did in the window, of those that have ever carried something or capped a flow."""
        begin, end = self._begin, self._end or self.read()
        found = []
        for i, link in enumerate(self.serving.fabric.described):
            before, after = (at.carried[i] if i < len(at.carried) else 0.0 for at in (begin, end))
            waited_ps = end.waited_ps.get(i, 0.0) - begin.waited_ps.get(i, 0.0)
            if link.is_cap or waited_ps > 0 or self.serving.network.carried[i] > 0:
                rate, peak = link.capacity_bytes_per_s, self.peaks.get(i, 0.0)
                did, waited_s = after - before, waited_ps / PS_PER_S
                found.append(LinkUse(i, link.name, link.kind, rate, did, peak, waited_s, link.ends))
        return tuple(found)

    def kv_pool_use(self) -> KvPoolUse | None:
        """What the pool of KV blocks did in the window; None where no node lends."""
        moves, begin, end = self.serving.moves, self._begin.kv, (self._end or self.read()).kv
        if moves is None or begin is None or end is None or not moves.pool.places:
            return None
        return kv_pool_use(moves.ways.block_bytes, begin, end)

    def _sample_pools(self) -> None:
        prefill, decode = self.serving.prefill, self.serving.decode
        self._sample_colocated()
        self._noter("cluster", "cluster")("transfers", self.serving.network.active)
        if self.serving.moves is not None:
            for tier, cached_blocks, capacity_blocks in self.serving.moves.pool.occupancy(self.clock.now):
                self._noter("kv_pool", tier)("used_fraction", cached_blocks / capacity_blocks)
        if not prefill.replicas:
            return
        note = self._noter("pool", prefill.plan.name)
        note("queued", sum(len(replica.queue) for replica in prefill.replicas))
        claimed = sum(replica.memory.claimed for replica in prefill.replicas)
        cached = sum(replica.memory.cached for replica in prefill.replicas)
        blocks = max(prefill.capacity_blocks * len(prefill.replicas), 1)
        note("kv_claimed_fraction", claimed / blocks)
        note("kv_cached_fraction", cached / blocks)
        if not decode.replicas:
            return
        note = self._noter("pool", decode.plan.name)
        note("running", sum(replica.running for replica in decode.replicas))
        note("waiting", sum(replica.waiting for replica in decode.replicas))
        note("reserving", sum(replica.reserving for replica in decode.replicas))
        pages = max(decode.capacity_pages * len(decode.replicas), 1)
        note("kv_used_fraction", 1 - sum(replica.free_pages for replica in decode.replicas) / pages)

    def _sample_colocated(self) -> None:
        pool = self.serving.colocated
        if pool is None:
            return
        note = self._noter("pool", pool.plan.name)
        note("queued", sum(len(replica.waiting) for replica in pool.replicas))
        note("computing", sum(replica.under_way for replica in pool.replicas))
        note("running", sum(replica.running for replica in pool.replicas))
        blocks = max(pool.capacity_blocks * len(pool.replicas), 1)
        note("kv_claimed_fraction", sum(replica.memory.claimed for replica in pool.replicas) / blocks)
        note("kv_cached_fraction", sum(replica.memory.cached for replica in pool.replicas) / blocks)
        note("preempted", sum(replica.preemptions for replica in pool.replicas))

    def _sample_links(self, every_ps: int) -> None:
        """The mean and largest utilisation of each kind of link in the interval that ends now."""
        self.serving.network.settle()
        carried, before = self.serving.network.carried, self._carried
        totals: dict[str, tuple[float, float, float]] = {}
        for i, link in enumerate(self.serving.fabric.described):
            if link.is_cap:
                continue
            could = link.capacity_bytes_per_s * every_ps / PS_PER_S
            did = carried[i] - (before[i] if i < len(before) else 0.0)
            used = did / could if could else 0.0
            self.peaks[i] = max(self.peaks.get(i, 0.0), used)
            total_did, total_could, most = totals.get(link.kind, (0.0, 0.0, 0.0))
            totals[link.kind] = (total_did + did, total_could + could, max(most, used))
        self._carried = list(carried)
        for kind, (did, could, most) in totals.items():
            note = self._noter("links", kind)
            note("used_fraction", did / could if could else 0.0)
            note("busiest_fraction", most)

    def _noter(self, kind: str, name: str) -> Callable[[str, float], None]:
        log, now = self.serving.log, self.clock.now
        return lambda metric, value: log.sample(now, kind, name, metric, value)


def _counted(replica: PrefillReplica | DecodeReplica | ColocatedReplica, now_ps: int) -> tuple[int, ...]:
    """The counters of a replica."""
    busy_ps = replica.busy_by(now_ps)
    if isinstance(replica, ColocatedReplica):
        tokens, decoding_ps = replica.prompt_tokens + replica.tokens, replica.decoding_ps
        steps = (replica.steps, replica.decoded, replica.preemptions)
        short = (replica.shortages, replica.swapped, replica.step_tokens)
        return (busy_ps, replica.requests, tokens, *steps, decoding_ps, *short)
    if isinstance(replica, DecodeReplica):
        places = replica.places if isinstance(replica, VerifyingDecodeReplica) else replica.tokens
        done = (busy_ps, replica.requests, replica.tokens, replica.steps)
        return (*done, places, 0, 0, 0, 0, replica.tokens)
    return (busy_ps, replica.requests, replica.tokens, 0, 0, 0, 0, 0, 0, 0)
