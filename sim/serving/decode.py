"""Decode: sequences join a batch when their KV has arrived, and each step gives every one of them a token.

Model: continuous batching. A step of B sequences with c tokens of context lasts base[B] + per_token[B] * c;
context grows by B a step. So between two changes of the batch, n steps last

    n * first + growth * n * (n - 1) / 2,    first = base[B] + per_token[B] * c,  growth = per_token[B] * B

exactly, in integers, and one event stands for all of them: a *segment*. It ends with the first sequence
that is done, or with the first step boundary at or after the arrival of one that may join; an arrival
exactly on a boundary joins. The memory of a whole sequence is reserved before its KV is sent; whoever
finds none waits, first come, first served.
Ignores: prompts mixed into the batch, preemption; speculation is in sim.serving.verifyingdecode.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from heapq import heapify, heappop, heappush

from simpy import Event

from sim.clock import TIMER, Clock, Errand, Moment
from sim.serving.background import Background
from sim.serving.decodeestimates import DecodeEstimates
from sim.serving.job import UNFINISHED, Job
from sim.serving.loads import loads_of
from sim.serving.plan import PoolPlan, Seat, ServingPlan
from sim.serving.routing import chooser_of, spots_of, view_of
from sim.serving.steps import length_ps, steps_until
from sim.tables.recorder import Recorder
from sim.tables.schema import NOT_YET
from sim.timing.timing import DecodeTable
from sim.workload.request import Request

NOBODY: list[Job] = []


class DecodePool:
    """The decode replicas, what the router knows of them, and the router.

    `finished` is called with each job that has all its tokens.
    """

    def __init__(
        self, clock: Clock, plan: ServingPlan, log: Recorder, finished: Callable[[Job], None]
    ) -> None:
        self.clock = clock
        self.plan: PoolPlan = plan.decode
        self.kv_pages = plan.kv_pages
        self.first_token_here = not plan.first_token_by_prefill
        self.speculation = plan.speculation
        self.log = log
        self.finished = finished
        self.loads = loads_of(len(self.plan.seats), plan.router.stale_ps, clock)
        self.stale_ps = plan.kv.stale_ps
        self.estimates: DecodeEstimates | None = None
        self.view = view_of(self.plan, plan, self.loads)
        self.sources = spots_of(plan.prefill)
        self.view.estimating = self.estimates_from_now
        self.choose = chooser_of(plan.router.decode_policy)
        self.steps = self._table().after(self.plan.host.step_ps)
        self.capacity_pages = self.plan.kv_tokens // plan.page_tokens
        first_rank = TIMER + len(plan.prefill.seats)
        seats = enumerate(self.plan.seats)
        self.replicas = [self._replica(number, seat, first_rank + number) for number, seat in seats]

    def _table(self) -> DecodeTable:
        """What steps take, without what the host does between them."""
        return self.plan.timing.decode_table(self.plan.max_sequences)

    def _replica(self, number: int, seat: Seat, rank: int) -> DecodeReplica:
        return DecodeReplica(self, number, seat, rank)

    def estimates_from_now(self) -> DecodeEstimates:
        """Keep estimates, from before the first request on."""
        if self.estimates is None:
            self.estimates = DecodeEstimates(self, self.stale_ps)
        return self.estimates

    def route(self, request: Request, source: int = NOT_YET) -> int:
        """Choose a replica for a request, whose prompt a prefill replica computes, if that is known."""
        view = self.view
        self.loads.catch_up()
        view.now_ps = self.clock.now
        view.near = self.sources[source] if self.sources and source >= 0 else None
        return self.choose(request, view)

    def assign(self, job: Job) -> DecodeReplica:
        """The replica that will decode a request, chosen now or when it arrived."""
        if job.decode_replica < 0:
            self.submit(job, self.route(job.request, job.prefill_replica))
        return self.replicas[job.decode_replica]

    def submit(self, job: Job, number: int) -> None:
        """Give a request to the replica that has just been chosen for it."""
        request = job.request
        job.decode_replica = number
        tokens = request.input_tokens + request.output_tokens
        job.kv_pages = self.kv_pages(tokens)
        self.loads.choose(number, tokens)
        if self.estimates is not None:
            self.estimates.assign(number, request, job.kv_pages, self.clock.now)

    def forget(self, job: Job) -> DecodeReplica:
        """A request will not be decoded any further: what a router knows of it goes. Its replica."""
        request, number = job.request, job.decode_replica
        self.loads.done(number, request.input_tokens + request.output_tokens)
        if self.estimates is not None:
            self.estimates.done(number, request, job.kv_pages, self.clock.now)
        return self.replicas[number]


class DecodeReplica:
    """One copy of the model that generates tokens; `number` is its place in the pool.

    `_running` is a heap of (step at whose end it is done, request id, job); steps count from the start of
    the simulation. The replica is in the middle of a segment of `_steps` steps that began at `_began_ps`: the
    first lasts `_first_ps`, each next one `_growth_ps` more. `nics` are those that its collectives cross, if
    they leave its NVLink domain.
    """

    __slots__ = (
        "_alarm",
        "_base",
        "_began_ps",
        "_context",
        "_first_ps",
        "_gone",
        "_growth_ps",
        "_idle",
        "_joined",
        "_measured",
        "_per_token",
        "_rank",
        "_record",
        "_reserving",
        "_running",
        "_step",
        "_steps",
        "_waiting",
        "busy_ps",
        "clock",
        "free_pages",
        "nics",
        "number",
        "pool",
        "requests",
        "seat",
        "tokens",
    )

    def __init__(self, pool: DecodePool, number: int, seat: Seat, rank: int) -> None:
        self.pool = pool
        self.clock = pool.clock
        self.number = number
        self.seat = seat
        self.free_pages = pool.capacity_pages
        self.nics: Background | None = None
        self.busy_ps = 0
        self.requests = 0
        self.tokens = 0
        self._rank = rank
        self._record = pool.log.segment
        self._base = pool.steps.base_ps
        self._per_token = pool.steps.per_token_ps
        self._reserving: deque[tuple[Job, Moment]] = deque()
        self._waiting: deque[Job] = deque()
        self._running: list[tuple[int, int, Job]] = []
        self._measured = 0
        self._context = 0
        self._step = 0
        self._began_ps = 0
        self._steps = 0
        self._first_ps = 0
        self._growth_ps = 0
        self._joined = 0
        self._gone = 0
        self._alarm: Moment | None = None
        self._idle: Moment | None = None
        Errand(self.serve())

    @property
    def running(self) -> int:
        """Sequences in the batch."""
        return len(self._running)

    @property
    def steps(self) -> int:
        """Steps taken."""
        return self._step

    @property
    def waiting(self) -> int:
        """Sequences whose KV is here but that have not joined the batch."""
        return len(self._waiting)

    @property
    def reserving(self) -> int:
        """Requests that wait for KV memory here."""
        return len(self._reserving)

    def reserve(self, job: Job) -> Moment | None:
        """Take KV memory for a whole sequence: None if it is granted at once, else the event of the grant."""
        if not self._reserving and job.kv_pages <= self.free_pages:
            self.free_pages -= job.kv_pages
            return None
        granted = Moment(self.clock)
        self._reserving.append((job, granted))
        return granted

    def join(self, job: Job) -> None:
        """Let a sequence whose KV has arrived into the batch at the next step boundary, if there is room."""
        self._waiting.append(job)
        idle, self._idle = self._idle, None
        if idle is not None:
            self.clock.ring(idle, self._rank)
        elif self._alarm is not None and len(self._running) < self.pool.plan.max_sequences:
            self._cut_short(self._alarm)

    def withdraw(self, job: Job) -> bool:
        """Take a request out of those that wait for memory; whether it was among them."""
        waiting = [entry for entry in self._reserving if entry[0] is job]
        if waiting:
            self._reserving.remove(waiting[0])
            self._grant()
        return bool(waiting)

    def leave(self, job: Job) -> None:
        """Let go of a sequence whose KV is here: at once, or at the next step boundary if it is running."""
        if job in self._waiting:
            self._waiting.remove(job)
            self.let_go(job)
            return
        self._gone += 1
        if self._alarm is not None:
            self._cut_short(self._alarm)

    def let_go(self, job: Job) -> None:
        """Free the memory of a sequence."""
        self.free_pages += job.kv_pages
        if self._reserving:
            self._grant()

    def busy_by(self, now_ps: int) -> int:
        """Time with work up to now, the part of a segment under way included."""
        return self.busy_ps + (now_ps - self._began_ps if self._alarm is not None else 0)

    def serve(self) -> Generator[Event, None, None]:
        """Run segment after segment, for as long as the simulation runs."""
        while True:
            joined = self._admit() if self._waiting else NOBODY
            if not self._running:
                if self.nics is not None:
                    self.nics.rest()
                self._idle = Moment(self.clock)
                yield self._idle
                continue
            self._alarm = self._begin_segment(joined)
            if self.nics is not None:
                self.nics.begin(self._crossing_bytes(), self._duration_ps())
            yield self._alarm
            self._alarm = None
            if self.nics is not None:
                self.nics.end(self._crossing_bytes())
            self._end_segment()

    def _duration_ps(self) -> int:
        """How long the segment lasts."""
        return length_ps(self._steps, self._first_ps, self._growth_ps)

    def _crossing_bytes(self) -> float:
        """What the collectives of the segment send out of each NVLink domain."""
        assert self.pool.plan.collectives is not None
        return self.pool.plan.collectives.step_bytes[len(self._running)] * self._steps

    def _admit(self) -> list[Job]:
        """Let waiting sequences join, in the order in which their KV arrived."""
        waiting, running = self._waiting, self._running
        room = self.pool.plan.max_sequences - len(running)
        tokens_before = 0 if self.pool.first_token_here else 1
        joined: list[Job] = []
        while waiting and room:
            job = waiting.popleft()
            request = job.request
            heappush(running, (self._step + request.output_tokens - tokens_before, request.id, job))
            self._context += request.input_tokens + tokens_before
            joined.append(job)
            room -= 1
        return joined

    def _begin_segment(self, joined: list[Job]) -> Moment:
        """Plan steps up to the first sequence that is done; the event is the end of the last step."""
        batch = len(self._running)
        per_token = self._per_token[batch]
        first = self._base[batch] + per_token * self._context
        self._growth_ps = per_token * batch
        self._take_in(joined, first)
        return self.clock.at(self._began_ps + length_ps(self._steps, first, self._growth_ps), self._rank)

    def _take_in(self, joined: list[Job], first: int) -> None:
        """Those who have joined take part from now on, in a first step that lasts so long."""
        self._began_ps = now = self.clock.now
        self._first_ps = first
        self._steps = self._running[0][0] - self._step
        self._joined = 0
        for job in joined:
            job.decoding_ps = now
            if job.measured:
                self._measured += 1
                self._joined += 1
            if self.pool.first_token_here:
                job.first_token_ps = now + first
            else:
                job.second_token_ps = now + first

    def _cut_short(self, alarm: Moment) -> None:
        """End the segment at the first step boundary at or after now."""
        first, growth = self._first_ps, self._growth_ps
        steps = steps_until(self.clock.now - self._began_ps, first, growth)
        if steps < self._steps:
            self._steps = steps
            self._alarm = self.clock.move(alarm, self._began_ps + length_ps(steps, first, growth), self._rank)

    def _end_segment(self) -> None:
        """Account for the steps of the segment, and let go of the sequences that are done."""
        running, steps, began = self._running, self._steps, self._began_ps
        gained = self._note_segment()
        self.busy_ps += self.clock.now - began
        self.tokens += gained
        self._context += gained
        self._step = step = self._step + steps
        if self._gone:
            self._drop_gone()
        while running and running[0][0] == step:
            self._finish(heappop(running)[2])

    def _note_segment(self) -> int:
        """Record the steps of the segment; the tokens that they gave."""
        batch, steps, measured, joined = len(self._running), self._steps, self._measured, self._joined
        row = (self.number, self._began_ps, steps, self._first_ps, self._growth_ps, batch, measured, joined)
        self._record(row)
        return batch * steps

    def _drop_gone(self) -> None:
        """Let go of sequences whose users have left; each has as much context as it has got tokens."""
        running = self._running
        leaving = [entry for entry in running if entry[2].status != UNFINISHED]
        running[:] = [entry for entry in running if entry[2].status == UNFINISHED]
        heapify(running)
        self._gone = 0
        for end, _, job in sorted(leaving, key=lambda entry: entry[1]):
            request = job.request
            self._context -= request.input_tokens + request.output_tokens - (end - self._step)
            if job.measured:
                self._measured -= 1
            self.let_go(job)

    def _finish(self, job: Job) -> None:
        request = job.request
        tokens = request.input_tokens + request.output_tokens
        self._context -= tokens
        if job.measured:
            self._measured -= 1
        self.requests += 1
        self.free_pages += job.kv_pages
        if self._reserving:
            self._grant()
        self.pool.loads.done(self.number, tokens)
        if self.pool.estimates is not None:
            self.pool.estimates.done(self.number, request, job.kv_pages, self.clock.now)
        self.pool.finished(job)

    def _grant(self) -> None:
        """Give freed memory to those who wait for it, first come, first served."""
        reserving = self._reserving
        while reserving and reserving[0][0].kv_pages <= self.free_pages:
            job, granted = reserving.popleft()
            self.free_pages -= job.kv_pages
            self.clock.ring(granted, self._rank)
