"""Computed KV that is saved to the pool, and evicted KV that moves down a tier.

Model: blocks are written to host memory of the replica's node, and are there for others when their bytes are.
Blocks that came from another node stay there alone, and what is new is written beside them, over the fabric,
unless the pool replicates them or that node is lost. Room is taken for all of them before the first byte
moves; where there is none, because others are writing or reading all there is, they are not saved. What host
memory evicts goes to the NVMe of its node, if that lends some, with those blocks before it that are not there
yet. What is evicted while blocks before it are on their way to the same place is sent alone, and found with
them.
Units: bytes, picoseconds.
Ignores: KV of generated tokens, and the memory that an evicted block leaves while it is still being read.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from functools import partial

from simpy import Event

from sim.clock import FLOW_START, Errand, Moment
from sim.kvpool.cache import Cache, Lease, Run
from sim.kvpool.pool import DRAM, NVME, Place
from sim.network.parts import Part
from sim.network.waiting import Delivery
from sim.serving.job import Job
from sim.serving.kvmoves import KvMoves
from sim.serving.kvways import KvPart
from sim.serving.plan import Seat
from sim.serving.stream import capped, production
from sim.tables.schema import NOT_YET

Done = Callable[[Job], None]
Ways = Callable[[int], list[KvPart]]
"""The flows that bring so many blocks to where they are written."""


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
        self._coming: dict[tuple[Place, int], Moment] = {}  # evicted blocks on their way to a place
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
                parts: Sequence[Part] = self.moves.ways.out_of_replica(seat, place.node, missing)
                latency_ps = max([path.latency_ps for _, path in parts])
                from_ps, until_ps = made_ps
                yield clock.at(max(clock.now, from_ps) + latency_ps, FLOW_START + job.request.id)
                if clock.now < until_ps:
                    lasts_ps = until_ps - clock.now
                    parts, links = capped(parts, lasts_ps, self.plan.layers, self.production)
                    job.capped = (*job.capped, *links)
                is_there = yield from self._write(place, cache, lease, parts)
                if is_there and self._is_copy(job, place, lease.hits):
                    self.moves.counts["replicated"] += 1
            else:
                cache.release(lease)
        done(job)

    def _saved(self, job: Job) -> Sequence[int]:
        """The leading blocks of a prompt that are written when it is computed."""
        if self.plan.write == "through":
            return job.blocks
        return job.blocks[: job.known_blocks] if self.plan.write == "second_use" else ()

    def _home(self, job: Job, seat: Seat) -> int:
        """The node that a prompt's blocks are written to: its own where the source is lost, too."""
        source = job.source
        if source is None or job.keeps_copy or source.node in self.pool.lost:
            return seat.nodes[0]
        return source.node

    @staticmethod
    def _is_copy(job: Job, place: Place, hits: int) -> bool:
        """Whether blocks of another node are kept here too, where the place had `hits` of them."""
        if not job.keeps_copy or job.source is None or job.wanted is None:
            return False
        return job.source.node != place.node and hits < job.wanted.found.blocks

    def _back(self, seat: Seat, run: Run) -> Generator[Event, Delivery, None]:
        place = Place(DRAM, seat.nodes[0])
        return self._move(place, run, partial(self.moves.ways.out_of_replica, seat, place.node))

    def _down(self, node: int, run: Run) -> Generator[Event, Delivery, None]:
        return self._move(Place(NVME, node), run, partial(self.moves.ways.down, node))

    def _move(self, place: Place, run: Run, ways: Ways) -> Generator[Event, Delivery, None]:
        """Write evicted blocks and those before them, unless they are there, or on their way already."""
        clock, coming = self.moves.clock, self._coming
        blocks = run.source[: run.end]
        if (place, blocks[-1]) in coming:
            return
        taken = self._take(place, blocks)
        if taken is None:
            return
        cache, lease = taken
        missing = [(place, block) for block in blocks[lease.hits :]]
        before = dict.fromkeys([coming[one] for one in missing if one in coming])
        own = [one for one in missing if one not in coming]
        there = Moment(clock)
        coming.update(dict.fromkeys(own, there))
        parts = ways(len(own))
        if own:
            yield clock.at(clock.now + max([path.latency_ps for _, path in parts]), FLOW_START)
        yield from self._write(place, cache, lease, parts, before)
        for one in own:
            del coming[one]
        there.fire()

    def _take(self, place: Place, blocks: Sequence[int]) -> tuple[Cache, Lease] | None:
        """Take room at a place for the blocks that are not there; None where nothing can be written."""
        cache = self.pool.cache(place)
        if cache is None or not blocks:
            return None
        self.pool.expire(self.moves.clock.now)
        lease = cache.admit(blocks, len(blocks))
        if lease is None:
            self.moves.counts["skipped"] += 1
            return None
        self.pool.touched(cache, self.moves.clock.now)
        return cache, lease

    def _write(
        self, place: Place, cache: Cache, lease: Lease, parts: Sequence[Part], before: Iterable[Moment] = ()
    ) -> Generator[Event, Delivery, bool]:
        """Send, and let others find the blocks when they, and those `before` them, are there; if ever."""
        size = sum([size for size, _ in parts])
        if size:
            is_lost = place.node in self.pool.lost
            delivery = None if is_lost else (yield self.moves.send(parts, place.node))
            if delivery is None or delivery.is_broken:
                self.moves.counts["broken"] += 1
                cache.abandon(lease)
                return False
        yield from before
        cache.publish(lease)
        cache.release(lease)
        self.pool.touched(cache, self.moves.clock.now)
        self.moves.has_written(place, parts)
        return True
