"""Cached KV that is fetched from the pool before its prompt is computed.

Model: the longest prefix that the pool has beyond what the replica's HBM holds comes from where it lies: the
replica's own node if that has as much as anybody, else the holder whose NICs send the fewest flows. It is
fetched where prompt and fetch together are done sooner than by computing the blocks anew, at the rate that
each link on the way would give one flow more now. The source keeps the blocks while they are read.
Layer by layer, a layer is computed when its KV is there and the layer before it is done.
Units: blocks, picoseconds.
Ignores: that the shares of links change while a fetch is under way, in the estimate (not in the fetch), the
index's own messages, and that prompts of one batch could share what each of them fetches.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from itertools import islice
from typing import NamedTuple

from simpy import Event

from sim.clock import FLOW_START, Errand
from sim.kvpool.cache import Cache
from sim.kvpool.pool import Place
from sim.network.flow import Transfer
from sim.network.maxmin import Link
from sim.network.waiting import Delivery
from sim.serving.job import Job
from sim.serving.kvmoves import KvMoves
from sim.serving.plan import Seat
from sim.serving.rebalance import Rebalance
from sim.tables.schema import NOT_YET

HOLDERS_LOOKED_AT = 16
"""At most so many holders of the longest prefix are compared; where more hold it, any will do."""
NEAR = frozenset({"nic_tx", "nic_rx", "dram_rdma"})
"""Kinds of links that mean that a node's NICs are the bottleneck."""
BROKEN = Delivery(NOT_YET, 0, is_broken=True)


class Found(NamedTuple):
    """A prefix of a prompt in the pool: where it lies, and how many blocks of it."""

    place: Place
    blocks: int


class Wanted(NamedTuple):
    """What a job is to fetch: the blocks found beyond the `hits` in its replica's HBM."""

    job: Job
    found: Found
    hits: int


class Fetch:
    """Finds prefixes in the pool and brings them to replicas."""

    def __init__(self, moves: KvMoves) -> None:
        self.moves = moves
        self.plan = moves.plan
        self.pool = moves.pool
        every_ps = self.plan.rebalance_ps if self.plan.is_shared else None
        self.rebalance = Rebalance(moves, every_ps) if every_ps is not None else None

    def find(self, blocks: Sequence[int], seat: Seat, hits: int) -> Found | None:
        """The longest prefix of a prompt that the pool has, if it is longer than what HBM has."""
        pool = self.pool
        match = pool.match(blocks, self.moves.clock.now)
        if not match.path:
            return None
        depth, place = pool.here(match, seat.nodes[0])
        longest, holders = pool.longest(match)
        if longest > depth:
            depth, place = longest, self.least_busy(holders)
        return Found(place, depth) if place is not None and depth > hits else None

    def least_busy(self, numbers: Collection[int]) -> Place:
        """Of the places that have a prefix, the one whose node sends the fewest flows; host memory first."""
        places, sending = self.pool.places, self.moves.fabric.sending
        return min(
            (places[number] for number in sorted(islice(numbers, 4 * HOLDERS_LOOKED_AT))[:HOLDERS_LOOKED_AT]),
            key=lambda place: (place.tier, sending(place.node), place.node),
        )

    def is_worth(self, seat: Seat, found: Found, hits: int, anew_ps: int, rest_ps: int) -> bool:
        """Whether a prompt is done sooner with a fetch and `rest_ps` of computing than with `anew_ps`."""
        if self.plan.fetch != "estimate":
            return self.plan.fetch == "always"
        return self.done_after_ps(self.quote_ps(found, seat, hits), rest_ps) < anew_ps

    def quote_ps(self, found: Found, seat: Seat, hits: int) -> int:
        """How long a fetch would take if each link on its way gave equal shares to what crosses it then.

        Its own parts may meet, and one may cross a link twice: each crossing is a share.
        """
        took, latency_ps = 0.0, 0
        parts = self.moves.ways.into_replica(found.place, seat, found.blocks - hits)
        own: dict[Link, int] = {}
        for _, path in parts:
            for link in path.links:
                own[link] = own.get(link, 0) + 1
        for size, path in parts:
            rate = min([link.capacity / (len(link.flows) + own[link]) for link in path.links])
            if path.cap is not None:
                rate = min(rate, path.cap.rate)
            took = max(took, size / rate if rate else float(1 << 60))
            latency_ps = max(latency_ps, path.latency_ps)
        return self.plan.fetch_start_ps + latency_ps + round(took)

    def done_after_ps(self, fetch_ps: int, compute_ps: int) -> int:
        """When a prompt is computed whose blocks take `fetch_ps` to come and whose rest takes `compute_ps`.

        Layer by layer either the last layer waits for its KV, or all of them for the first one's.
        """
        if not self.plan.overlaps:
            return fetch_ps + compute_ps
        layers = self.plan.layers
        return max(fetch_ps + compute_ps // layers, fetch_ps // layers + compute_ps)

    def begin(self, wanted: Sequence[Wanted], seat: Seat) -> Transfer:
        """Fetch what the jobs of a batch want; happens when all of it is there, or lost."""
        everything = Transfer(self.moves.clock, len(wanted))
        for one in wanted:
            Errand(self._fetch(one, seat, everything))
        return everything

    def _fetch(self, wanted: Wanted, seat: Seat, everything: Transfer) -> Generator[Event, Delivery, None]:
        """Fetch what one job wants, or find that it is lost."""
        job, (place, blocks), _ = wanted
        cache = self.pool.cache(place)
        delivery = BROKEN
        # What was found may be gone already: what HBM wrote back to make room for the batch can drive it out.
        if cache is not None and cache.hits(job.blocks) >= blocks:
            delivery = yield from self._read(wanted, cache, seat)
        job.fetch_link, job.fetch_waited_ps, is_broken = delivery
        if is_broken:
            self.moves.counts["broken"] += 1
            job.source = None
        else:
            job.source = place
            job.keeps_copy = self._keeps_copy(place, job.blocks[:blocks], delivery, seat)
        everything.flows -= 1
        if not everything.flows:
            everything.fire()

    def _read(self, wanted: Wanted, cache: Cache, seat: Seat) -> Generator[Event, Delivery, Delivery]:
        """Hold the blocks at their source, read them, let go."""
        moves, pool, clock = self.moves, self.pool, self.moves.clock
        job, (place, blocks), hits = wanted
        lease = cache.hold(job.blocks, blocks)
        pool.touched(cache, clock.now)
        pool.read(pool.tree.match(lease.blocks), blocks)
        if self.rebalance is not None:
            self.rebalance.read(place, lease.blocks)
        parts = moves.ways.into_replica(place, seat, blocks - hits)
        latency_ps = self.plan.fetch_start_ps + max([path.latency_ps for _, path in parts])
        yield clock.at(clock.now + latency_ps, FLOW_START + job.request.id)
        delivery = BROKEN if place.node in pool.lost else (yield moves.send(parts, place.node))
        cache.release(lease)
        if not delivery.is_broken:
            moves.has_read(place, parts)
        return delivery

    def _keeps_copy(self, place: Place, blocks: Sequence[int], delivery: Delivery, seat: Seat) -> bool:
        """Whether the replica's node keeps what was fetched: it does if NICs held it back, so it is hot."""
        plan = self.plan
        if place.node == seat.nodes[0]:
            return True
        if plan.replicate == "never":
            return False
        if plan.max_copies is not None:
            copies = self.pool.copies(self.pool.tree.match(blocks))
            if copies >= plan.max_copies:
                return False
        is_near = self.moves.fabric.described[delivery.link].kind in NEAR
        return plan.replicate == "always" or (is_near and delivery.waited_ps > 0)
