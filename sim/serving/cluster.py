"""The serving cluster as a whole: requests come in, cross its pools and the fabric, and leave a row."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable

from simpy import Event

from sim.clock import ARRIVAL, Clock, Errand, Moment
from sim.network.fabric import Fabric
from sim.network.flows import FlowNetwork
from sim.serving.background import background
from sim.serving.colocated import ColocatedPool
from sim.serving.decode import DecodePool
from sim.serving.dispatch import Dispatch
from sim.serving.handoff import Handoff
from sim.serving.job import FINISHED, REJECTED, UNFINISHED, Job
from sim.serving.kvmoves import KvMoves
from sim.serving.leaving import Leaving
from sim.serving.places import Spot
from sim.serving.plan import ServingPlan
from sim.serving.prefill import PrefillPool
from sim.serving.prefillflows import PrefillFlows
from sim.serving.rejection import Rejection
from sim.serving.verifyingdecode import VerifyingPool
from sim.tables.recorder import Recorder
from sim.tables.schema import NOT_YET
from sim.workload.request import NO_BLOCKS, Request


class Serving:
    """Prefill pool, handoff, decode pool, and the requests that are on their way through them.

    `live` holds every request that has arrived and is not done, `offered` happens when the workload is
    exhausted. `when_done`, if there is one, is told of each request that has come to its end.
    """

    def __init__(self, clock: Clock, plan: ServingPlan, fabric: Fabric, log: Recorder) -> None:
        self.clock = clock
        self.plan = plan
        self.fabric = fabric
        self.log = log
        self.network = FlowNetwork(clock, fabric.table.carried)
        self.moves: KvMoves | None = None
        self.prefill = PrefillPool(clock, plan, self._computed)
        kind = DecodePool if plan.speculation is None else VerifyingPool
        self.decode = kind(clock, plan, log, self._finished)
        self.handoff = Handoff(self.prefill, self.decode, fabric, self.network, plan)
        self.colocated: ColocatedPool | None = None
        if plan.colocated is not None:
            self.colocated = ColocatedPool(clock, plan, log, self._finished, (fabric, self.network))
        self.dispatch = Dispatch(plan)
        pools: tuple[PrefillPool | DecodePool | ColocatedPool, ...] = (self.prefill, self.decode)
        for pool in pools if self.colocated is None else (*pools, self.colocated):
            if pool.plan.collectives is not None:
                for replica in pool.replicas:
                    replica.nics = background(fabric, self.network, replica.seat)
        if plan.kv.is_active:
            self.moves = KvMoves(clock, plan.kv, plan.prefill, fabric, self.network)
            self.prefill.flows = PrefillFlows(self.prefill, self.moves, self.handoff)
        self.rejection: Rejection | None = None
        if plan.router.rejects and self.prefill.replicas:
            self.rejection = Rejection(plan.router, self.prefill, self.decode)
        self.leaving: Leaving | None = None
        if plan.cancels or plan.timeout_ps is not None:
            self.leaving = Leaving(self, plan.timeout_ps, self._left)
        self.when_done: Callable[[Job], None] | None = None
        self.live: dict[int, Job] = {}
        self.arrived = 0
        self.done = 0
        self.rejected: dict[str, int] = {}
        self.offered = Moment(clock)
        self.last_arrival_ps = 0

    @property
    def waiting(self) -> int:
        """Requests that wait for a replica to begin with their prompt."""
        waiting = sum(len(replica.queue) for replica in self.prefill.replicas)
        if self.colocated is not None:
            waiting += sum(len(replica.waiting) for replica in self.colocated.replicas)
        return waiting

    def begin(self) -> None:
        """Caches are warm, requests will come."""
        for pool in (self.prefill, self.decode, self.colocated):
            if pool is not None:
                pool.loads.begin()

    def offer(self, requests: Iterable[Request]) -> Generator[Event, None, None]:
        """Let requests arrive at their instants, later by what the front end takes.

        The next arrival is on the clock before a request is taken in: whoever decides at this instant can
        see whether another one arrives at it.
        """
        clock, front_ps = self.clock, self.plan.request_time_ps
        self.begin()
        coming = iter(requests)
        request = next(coming, None)
        arrival = clock.at(request.arrived_ps + front_ps, ARRIVAL + request.id) if request else None
        while request and arrival:
            yield arrival
            arrived, request = request, next(coming, None)
            if request:
                arrival = clock.at(request.arrived_ps + front_ps, ARRIVAL + request.id)
            self.last_arrival_ps = arrived.arrived_ps
            self.accept(arrived)
        self.offered.fire()

    def accept(self, request: Request) -> None:
        """Take in a request: reject it if it cannot be served, or not as it should be, else route it."""
        arrived_ps = request.arrived_ps
        blocks = request.blocks if self.plan.reuse else NO_BLOCKS
        if not self.plan.kv.keeps_partial:
            blocks = blocks[: request.input_tokens // self.plan.block_tokens]
        kv_blocks = -(-request.input_tokens // self.plan.block_tokens)
        measured = self.plan.measured_from_ps <= arrived_ps < self.plan.measured_until_ps
        if self.colocated is not None and self.dispatch.to_colocated(request):
            self._accept_colocated(self.colocated, Job(request, blocks, kv_blocks, measured))
            return
        if not self.decode.replicas:
            request = request._replace(output_tokens=1)  # all that a prefill gives
        job = Job(request, blocks, kv_blocks, measured)
        self.arrived += 1
        tokens = request.input_tokens + request.output_tokens
        if kv_blocks > self.prefill.capacity_blocks:
            self._reject(job, "prompt larger than the KV memory of a prefill replica")
        elif self.decode.replicas and self.decode.kv_pages(tokens) > self.decode.capacity_pages:
            self._reject(job, "sequence larger than the KV memory of a decode replica")
        else:
            self._submit(job)

    def _accept_colocated(self, pool: ColocatedPool, job: Job) -> None:
        """Give a request to a colocated replica, unless none could ever hold it."""
        self.arrived += 1
        if not pool.holds(job.request, job.blocks):
            self._reject(job, "sequence larger than the KV memory of a colocated replica")
            return
        number = pool.route(job.request, job.blocks, self.clock.now)
        self.live[job.request.id] = job
        self.dispatch.colocated += 1
        pool.submit(job, number)
        if self.leaving is not None:
            self.leaving.watch(job)

    def _submit(self, job: Job) -> None:
        """Route a request, or reject it early."""
        request = job.request
        target = self._target(job) if self.plan.router.decode_first else NOT_YET
        number = self.prefill.route(request, job.blocks, self.clock.now)
        if self.rejection is not None:
            reason = self.rejection.reason(request, number, self.clock.now)
            if reason is not None:
                self._reject(job, reason)
                return
        if target >= 0:
            self.decode.submit(job, target)
        self.live[request.id] = job
        self.dispatch.apart += 1
        if self.leaving is not None:
            self.leaving.watch(job)
        if self.plan.reserves_first and self.handoff.is_needed(job):
            granted = self.decode.assign(job).reserve(job)
            if granted is not None:
                Errand(self._wait(job, granted))
                return
            job.reserved_ps = self.clock.now
        self.prefill.submit(job, number)

    def _wait(self, job: Job, granted: Event) -> Generator[Event, None, None]:
        """Wait for the memory of a decode replica, and choose who computes the prompt once it is there."""
        yield granted
        job.reserved_ps = self.clock.now
        if self.plan.router.decode_first:
            self.prefill.view.near = self._spot(job.decode_replica)
        number = self.prefill.route(job.request, job.blocks, self.clock.now)
        self.prefill.submit(job, number)

    def _target(self, job: Job) -> int:
        """Choose the decode replica before the prefill replica, which may then be chosen near to it."""
        self.prefill.view.near = None
        if not self.handoff.is_needed(job):
            return NOT_YET
        target = self.decode.route(job.request)
        self.prefill.view.near = self._spot(target)
        return target

    def _spot(self, target: int) -> Spot | None:
        """Where a decode replica is, if the plan says it."""
        spots = self.decode.view.places.spots
        return spots[target] if spots else None

    def _reject(self, job: Job, reason: str) -> None:
        """Turn away a request."""
        self.rejected[reason] = self.rejected.get(reason, 0) + 1
        job.status = REJECTED
        self._record(job)

    def _computed(self, job: Job) -> None:
        """A prompt is done: it may have given the only token, else its KV moves on."""
        if job.status != UNFINISHED:
            if not job.is_leaving or job.is_withdrawn or not self.handoff.is_needed(job):
                self.prefill.replicas[job.prefill_replica].release(job)
                if job.reserved_ps >= 0:
                    self.decode.replicas[job.decode_replica].let_go(job)
            return
        if self.plan.first_token_by_prefill:
            job.first_token_ps = job.computed_ps
            if job.request.output_tokens == 1:
                self.prefill.replicas[job.prefill_replica].release(job)
                self._finished(job)
                return
        if not job.is_leaving:
            self.handoff.begin(job)

    def _finished(self, job: Job) -> None:
        job.status = FINISHED
        job.finished_ps = self.clock.now
        self._left(job)

    def _left(self, job: Job) -> None:
        """A request is done, or its user has left."""
        del self.live[job.request.id]
        if job.is_colocated:
            self.dispatch.colocated -= 1
        else:
            self.dispatch.apart -= 1
        self._record(job)

    def _record(self, job: Job) -> None:
        self.done += 1
        self.log.request(job.row(self.clock.now), job.request.blocks)
        if self.when_done is not None:
            self.when_done(job)

    def close(self) -> None:
        """Record what has not come to its end."""
        for job in list(self.live.values()):
            self.log.request(job.row(self.clock.now), job.request.blocks)
        self.log.flush()
