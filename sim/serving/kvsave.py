"""Computed KV that is saved to the pool, and evicted KV that moves down a tier.

Model: blocks are written to host memory of the replica's node, and are there for others when their bytes are.
Blocks that came from another node stay there alone, unless the pool replicates them; then what is new is
written beside them, over the fabric. Room is taken for all of them before the first byte moves; where there
is none, because others are writing or reading all there is, they are not saved. What host memory evicts goes
to the NVMe of its node, if that lends some, with those blocks before it that are not there yet.
Units: bytes, picoseconds.
Ignores: KV of generated tokens, and the memory that an evicted block leaves while it is still being read.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

from simpy import Event

from sim.clock import FLOW_START, Errand
from sim.kvpool.cache import Cache, Lease, Run
from sim.kvpool.pool import DRAM, NVME, Place
from sim.network.parts import Part
from sim.network.waiting import Delivery
from sim.serving.job import Job
from sim.serving.kvmoves import KvMoves
from sim.serving.plan import Seat
from sim.serving.stream import capped, production
from sim.tables.schema import NOT_YET

Done = Callable[[Job], None]


class Save:
    """Writes blocks of replicas, and blocks evicted above, to the pool.

    As long as it `is_warming`, before the clock starts, blocks are where they are written to at once.
    """

    def __init__(self, moves: KvMoves) -> None:
        self.moves = moves
        self.plan = moves.plan
        self.pool = moves.pool
        self.production = production(moves.fabric) if self.plan.streams else NOT_YET
        self.is_warming = False
        self.pool.demote_to(self._demote)

    def begin(self, job: Job, seat: Seat, done: Done, made_ps: tuple[int, int]) -> None:
        """Write a prompt's blocks: its first layer is computed at one instant, all of it at another."""
        Errand(self._save(job, seat, done, made_ps))

    def write_back(self, seat: Seat) -> Callable[[Run], None]:
        """What a replica's HBM is to call with the blocks that it evicts, where these are written back."""

        def evicted(run: Run) -> None:
            if self.is_warming:
                self.put(Place(DRAM, seat.nodes[0]), run.source[: run.end])
            else:
                Errand(self._back(seat, run))

        return evicted

    def put(self, place: Place, blocks: Sequence[int]) -> None:
        """Let blocks be at a place as if they had been written there before; nothing moves."""
        cache = self.pool.cache(place)
        if cache is not None:
            cache.keep(blocks)
            self.pool.touched(cache, self.moves.clock.now)

    def _demote(self, node: int, run: Run) -> None:
        if self.is_warming:
            self.put(Place(NVME, node), run.source[: run.end])
        else:
            Errand(self._down(node, run))

    def _save(
        self, job: Job, seat: Seat, done: Done, made_ps: tuple[int, int]
    ) -> Generator[Event, Delivery, None]:
        """Take room for the blocks that are not there, write them, and let others find them."""
        clock, place = self.moves.clock, Place(DRAM, self._home(job, seat))
        blocks = self._saved(job)
        taken = self._take(place, blocks)
        if taken is not None:
            cache, lease = taken
            missing = len(blocks) - lease.hits
            if missing:
                parts = self.moves.ways.out_of_replica(seat, place.node, missing)
                latency_ps = max([path.latency_ps for _, path in parts])
                from_ps, until_ps = made_ps
                yield clock.at(max(clock.now, from_ps) + latency_ps, FLOW_START + job.request.id)
                if clock.now < until_ps:
                    lasts_ps = until_ps - clock.now
                    held, links = capped(parts, lasts_ps, self.plan.layers, self.production)
                    job.capped = (*job.capped, *links)
                    yield from self._write(place, cache, lease, held)
                else:
                    yield from self._write(place, cache, lease, parts)
            else:
                cache.release(lease)
        done(job)

    def _saved(self, job: Job) -> Sequence[int]:
        """The leading blocks of a prompt that are written when it is computed."""
        if self.plan.write == "through":
            return job.blocks
        return job.blocks[: job.known_blocks] if self.plan.write == "second_use" else ()

    def _home(self, job: Job, seat: Seat) -> int:
        """The node that a prompt's blocks are written to."""
        own = seat.nodes[0]
        if job.source is None or job.source.node == own:
            return own
        if job.keeps_copy:
            self.moves.counts["replicated"] += 1
            return own
        return job.source.node

    def _back(self, seat: Seat, run: Run) -> Generator[Event, Delivery, None]:
        place, blocks = Place(DRAM, seat.nodes[0]), run.source[: run.end]
        taken = self._take(place, blocks)
        if taken is not None:
            parts = self.moves.ways.out_of_replica(seat, place.node, len(blocks) - taken[1].hits)
            yield from self._write(place, *taken, parts)

    def _down(self, node: int, run: Run) -> Generator[Event, Delivery, None]:
        place, blocks = Place(NVME, node), run.source[: run.end]
        taken = self._take(place, blocks)
        if taken is not None:
            parts = self.moves.ways.down(node, len(blocks) - taken[1].hits)
            yield from self._write(place, *taken, parts)

    def _take(self, place: Place, blocks: Sequence[int]) -> tuple[Cache, Lease] | None:
        """Take room at a place for the blocks that are not there; None where nothing can be written."""
        cache = self.pool.cache(place)
        if cache is None or not blocks:
            return None
        lease = cache.admit(blocks, len(blocks))
        if lease is None:
            self.moves.counts["skipped"] += 1
            return None
        self.pool.touched(cache, self.moves.clock.now)
        return cache, lease

    def _write(
        self, place: Place, cache: Cache, lease: Lease, parts: Sequence[Part]
    ) -> Generator[Event, Delivery, None]:
        """Send, and let others find the blocks when they are there."""
        size = sum([size for size, _ in parts])
        if size:
            is_lost = place.node in self.pool.lost
            delivery = None if is_lost else (yield self.moves.send(parts, place.node))
            if delivery is None or delivery.is_broken:
                self.moves.counts["broken"] += 1
                cache.abandon(lease)
                return
        cache.publish(lease)
        cache.release(lease)
        self.pool.touched(cache, self.moves.clock.now)
        self.moves.has_written(place, parts)
