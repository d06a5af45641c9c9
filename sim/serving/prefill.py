"""Prefill: prompts wait in a replica's queue, are computed in batches, and hold KV until it is handed over.

Model: first come, first served. A batch takes prompts from the head of the queue while their new tokens
fit the token budget (one prompt always may) and their KV blocks fit the memory; all of it is computed in
one step, whose length the Timing gives. The replica decides when it becomes idle, or when something
comes in while it is, after everything else of that instant. Where the host has to send KV off it is busy
with that before the next batch.
Ignores: chunking of one prompt over several steps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING

from simpy import Event

from sim.clock import TIMER, Clock, Errand, Moment
from sim.kvpool.cache import Cache
from sim.kvpool.tree import PrefixTree
from sim.serving.background import Background
from sim.serving.job import Job
from sim.serving.loads import loads_of
from sim.serving.plan import PoolPlan, Seat, ServingPlan
from sim.serving.prefillestimates import PrefillEstimates
from sim.serving.routers import NOTHING
from sim.serving.routing import chooser_of, view_of
from sim.tables.schema import NOT_YET
from sim.workload.request import NO_BLOCKS, Request

if TYPE_CHECKING:
    from sim.serving.prefillflows import PrefillFlows


class PrefillPool:
    """The prefill replicas, what the router knows of them, and the router.

    `computed` is called with each job whose prompt is done. `flows` is what moves KV to and from replicas
    while they compute; None where nothing does.
    """

    def __init__(self, clock: Clock, plan: ServingPlan, computed: Callable[[Job], None]) -> None:
        self.clock = clock
        self.plan: PoolPlan = plan.prefill
        self.block_tokens = plan.block_tokens
        self.computed = computed
        self.loads = loads_of(len(self.plan.seats), plan.router.stale_ps, clock)
        self.tree = PrefixTree()
        self.kv = plan.kv
        self.estimates: PrefillEstimates | None = None
        self.view = view_of(self.plan, plan, self.loads)
        self.view.estimating = self.estimates_from_now
        self.choose = chooser_of(plan.router.policy)
        self.capacity_blocks = self.plan.kv_tokens // plan.block_tokens
        self.flows: PrefillFlows | None = None
        self.keeps_blocks = plan.kv.hbm
        self.replicas = [
            PrefillReplica(self, number, seat, Cache(self.capacity_blocks, self.tree, number))
            for number, seat in enumerate(self.plan.seats)
        ]

    def estimates_from_now(self) -> PrefillEstimates:
        """Keep estimates, from before the first request on; they cost time, so nobody else has them."""
        if self.estimates is None:
            self.estimates = PrefillEstimates(self, self.kv)
        return self.estimates

    def route(self, request: Request, blocks: Sequence[int], now_ps: int) -> int:
        """Choose a replica for a request."""
        view = self.view
        self.loads.catch_up()
        view.now_ps = now_ps
        view.blocks = blocks
        view.match = self.tree.match(blocks) if blocks else NOTHING
        return self.choose(request, view)

    def submit(self, job: Job, number: int) -> None:
        """Put a request in the queue of the replica that has just been chosen for it."""
        request, view = job.request, self.view
        tokens = request.input_tokens
        if job.blocks:
            tokens -= self.tokens_saved(job, view.match.depth(number))
        if self.estimates is not None:
            self.estimates.ask(request, view)
            job.estimate_ps = self.estimates.assign(number, self.clock.now)
        job.estimate_tokens = tokens
        job.prefill_replica = number
        job.routed_ps = self.clock.now
        self.loads.choose(number, tokens)
        self.replicas[number].submit(job)

    def kept_blocks(self, request: Request) -> Sequence[int]:
        """The blocks of a prompt that are kept once it is computed."""
        return request.blocks

    def withdraw(self, job: Job) -> None:
        """Take a request out of the queue of its replica."""
        number = job.prefill_replica
        self.loads.done(number, job.estimate_tokens)
        if self.estimates is not None:
            self.estimates.dropped(number, job.estimate_ps, self.clock.now)
        self.replicas[number].withdraw(job)

    def tokens_saved(self, job: Job, blocks: int) -> int:
        """Tokens that need no computing thanks to cached blocks; one must run to give the next token."""
        return min(blocks * self.block_tokens, job.request.input_tokens - 1)


class PrefillReplica:
    """One copy of the model that computes prompts; `number` is its place in the pool.

    `nics` are those that its collectives cross, if they leave its NVLink domain.
    """

    __slots__ = (
        "_idle",
        "_lengths",
        "_rank",
        "_started_ps",
        "busy_ps",
        "clock",
        "memory",
        "nics",
        "number",
        "pool",
        "queue",
        "requests",
        "seat",
        "tokens",
    )

    def __init__(self, pool: PrefillPool, number: int, seat: Seat, memory: Cache) -> None:
        self.pool = pool
        self.clock = pool.clock
        self.number = number
        self.seat = seat
        self.memory = memory
        self.nics: Background | None = None
        self.queue: deque[Job] = deque()
        self.busy_ps = 0
        self.requests = 0
        self.tokens = 0
        self._rank = TIMER + number
        self._idle: Moment | None = None
        self._lengths: set[int] | None = set() if pool.plan.first_length_ps else None
        self._started_ps = NOT_YET
        Errand(self.serve())

    def submit(self, job: Job) -> None:
        """Put a prompt at the end of the queue."""
        self.queue.append(job)
        self._wake()

    def withdraw(self, job: Job) -> None:
        """Take a prompt out of the queue; those behind it may fit."""
        self.queue.remove(job)
        if self.queue:
            self._wake()

    def release(self, job: Job) -> None:
        """Let go of the KV of a prompt, unless somebody else still needs it: it is somewhere else now."""
        job.users -= 1
        if job.users:
            return
        assert job.lease is not None
        self.memory.release(job.lease)
        if self.queue:
            self._wake()

    def busy_by(self, now_ps: int) -> int:
        """Time with work up to now, the part of a batch under way included."""
        return self.busy_ps + (now_ps - self._started_ps if self._started_ps >= 0 else 0)

    def serve(self) -> Generator[Event, None, None]:
        """Compute batch after batch, for as long as the simulation runs."""
        clock, prefill_ps, host = self.clock, self.pool.plan.timing.prefill_ps, self.pool.plan.host
        while True:
            flows = self.pool.flows
            batch, chunks = self._admit()
            if not batch:
                if self.nics is not None:
                    self.nics.rest()
                self._tell(clock.now)
                self._idle = Moment(clock)
                yield self._idle
                continue
            duration_ps = prefill_ps(chunks) + host.prefill_ps
            if self._lengths is not None:
                duration_ps += self._unseen(chunks)
            self._started_ps = clock.now
            if self.nics is not None:
                self.nics.begin(self._crossing_bytes(chunks), duration_ps)
            done_ps = clock.now + duration_ps
            self._tell(done_ps, batch)
            if flows is not None:
                fetched = flows.fetch(batch, self.seat)
                if fetched is not None:
                    yield fetched
                    chunks, done_ps = flows.fetched(batch, self, self._started_ps, duration_ps)
                    self._tell(done_ps)
                flows.leave(batch, self, done_ps)
            yield clock.at(done_ps, self._rank)
            self._end(batch, chunks)
            if host.send_ps:
                tokens = sum(job.request.input_tokens for job in batch)
                self._started_ps = clock.now
                yield clock.at(clock.now + host.send_ps + round(host.send_token_ps * tokens), self._rank)
                self.busy_ps += clock.now - self._started_ps
                self._started_ps = NOT_YET

    def _end(self, batch: list[Job], chunks: list[tuple[int, int]]) -> None:
        """Account for a batch that is computed."""
        if self.nics is not None:
            self.nics.end(self._crossing_bytes(chunks))
        self.busy_ps += self.clock.now - self._started_ps
        self._started_ps = NOT_YET
        for job, (new_tokens, _) in zip(batch, chunks, strict=True):
            self._finish(job, new_tokens)

    def _unseen(self, chunks: list[tuple[int, int]]) -> int:
        """What it costs extra that lengths come up which this replica has not computed before."""
        assert self._lengths is not None
        unseen = {new for new, _ in chunks} - self._lengths
        self._lengths |= unseen
        return len(unseen) * self.pool.plan.first_length_ps

    def _tell(self, free_ps: int, taken: Sequence[Job] = ()) -> None:
        """Tell whoever estimates until when the replica is busy, with prompts taken from the queue."""
        estimates = self.pool.estimates
        if estimates is not None:
            taken_ps = sum([job.estimate_ps for job in taken])
            estimates.began(self.number, free_ps, taken_ps, self.clock.now)

    def _crossing_bytes(self, chunks: list[tuple[int, int]]) -> float:
        """What the collectives of a batch send out of each NVLink domain."""
        assert self.pool.plan.collectives is not None
        return self.pool.plan.collectives.token_bytes * sum(new for new, _ in chunks)

    def _admit(self) -> tuple[list[Job], list[tuple[int, int]]]:
        """Take the next batch from the head of the queue; chunks are (new, cached) tokens of each prompt."""
        queue, memory, saved, flows = self.queue, self.memory, self.pool.tokens_saved, self.pool.flows
        batch: list[Job] = []
        chunks: list[tuple[int, int]] = []
        budget = self.pool.plan.max_batch_tokens
        while queue and budget > 0:
            job = queue[0]
            tokens = job.request.input_tokens
            if flows is not None:
                cached = flows.look(job, self)
            else:
                cached = saved(job, memory.hits(job.blocks)) if batch else 0
            if batch and tokens - cached > budget:
                break
            blocks = job.blocks if self.pool.keeps_blocks else NO_BLOCKS
            lease = memory.admit(blocks, job.kv_blocks, job.match)
            if lease is None:
                break
            queue.popleft()
            job.lease, job.match = lease, None
            if flows is None:
                cached = job.hbm_tokens = saved(job, lease.hits) if lease.hits else 0
            job.cached_tokens = cached
            job.prefill_ps = self.clock.now
            batch.append(job)
            chunks.append((tokens - cached, cached))
            budget -= tokens - cached
        return batch, chunks

    def _finish(self, job: Job, new_tokens: int) -> None:
        assert job.lease is not None
        self.memory.publish(job.lease)
        self.pool.loads.done(self.number, job.estimate_tokens)
        self.requests += 1
        self.tokens += new_tokens
        job.computed_ps = self.clock.now
        if self.pool.flows is not None:
            self.pool.flows.computed(job)
        self.pool.computed(job)

    def _wake(self) -> None:
        idle, self._idle = self._idle, None
        if idle is not None:
            self.clock.ring(idle, self._rank)
