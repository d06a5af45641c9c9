"""A colocated pool: replicas that compute prompts and decode, each with its own queue and memory.

Model: a request goes to one replica for good; which, the prefill router says. Nothing moves over the fabric
but what collectives send. How the replicas fill their steps: sim.serving.colocatedreplica.
Ignores: a pool of KV blocks beyond the replica's own memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sim.clock import TIMER, Clock
from sim.kvpool.tree import PrefixTree
from sim.serving.batching import Limits, batching
from sim.serving.colocatedreplica import ColocatedReplica
from sim.serving.job import Job
from sim.serving.loads import loads_of
from sim.serving.order import order
from sim.serving.plan import BatchingPlan, PoolPlan, Seat, ServingPlan
from sim.serving.routers import NOTHING
from sim.serving.routing import chooser_of, view_of
from sim.serving.sequence import Sequence as Running
from sim.serving.swapping import SwappingReplica, Wires
from sim.serving.verifying import DraftedSequence, VerifyingReplica
from sim.tables.recorder import Recorder
from sim.timing.timing import DecodeTable
from sim.workload.request import NO_BLOCKS, Request

if TYPE_CHECKING:
    from sim.serving.prefillestimates import PrefillEstimates
    from sim.serving.prefillflows import PrefillFlows


class ColocatedPool:
    """The replicas, what the router knows of them, and the router.

    `finished` is called with each job that has all its tokens. In tables replicas are counted on from
    those that only prefill, and from those that only decode: `first_prefill`, `first_decode`.
    """

    def __init__(
        self,
        clock: Clock,
        plan: ServingPlan,
        log: Recorder,
        finished: Callable[[Job], None],
        wires: Wires,
    ) -> None:
        assert plan.colocated is not None
        assert plan.colocated.batching is not None
        self.clock = clock
        self.plan: PoolPlan = plan.colocated
        self.batching: BatchingPlan = plan.colocated.batching
        self.log = log
        self.finished = finished
        self.kv_pages = plan.kv_pages
        self.keeps_blocks = plan.reuse and plan.kv.hbm
        self.page_tokens = plan.page_tokens
        self.block_tokens = plan.block_tokens if self.keeps_blocks else plan.page_tokens
        self.capacity_blocks = self.plan.kv_tokens // self.block_tokens
        self.spare_blocks = -(-self.batching.spare_tokens // self.block_tokens)
        self.limits = Limits(self.plan.max_batch_tokens, self.batching.chunk_tokens, self.plan.max_sequences)
        self.rule = batching[self.batching.rule]
        self.key = order[self.batching.order]
        self.speculation = plan.speculation
        self.lookahead = plan.speculation.draft_tokens if plan.speculation is not None else 0
        table = self.plan.timing.decode_table if plan.speculation is None else self._speculative
        self.steps = table(self.plan.max_sequences).after(self.plan.host.step_ps)
        self.loads = loads_of(len(self.plan.seats), plan.router.stale_ps, clock)
        self.tree = PrefixTree()
        self.flows: PrefillFlows | None = None
        self.estimates: PrefillEstimates | None = None
        self.view = view_of(self.plan, plan, self.loads)
        self.choose = chooser_of(plan.router.policy)
        self.first_prefill, self.first_decode = len(plan.prefill.seats), len(plan.decode.seats)
        first_rank = TIMER + self.first_prefill + self.first_decode
        self.replicas = [
            self._replica(number, seat, first_rank + number, wires)
            for number, seat in enumerate(self.plan.seats)
        ]

    def _speculative(self, max_batch: int) -> DecodeTable:
        assert self.speculation is not None
        return self.speculation.table(self.plan.timing, max_batch)

    def _replica(self, number: int, seat: Seat, rank: int, wires: Wires) -> ColocatedReplica:
        if self.speculation is not None:
            return VerifyingReplica(self, number, seat, rank, (wires, self.speculation))
        if self.batching.swap is not None:
            return SwappingReplica(self, number, seat, rank, wires)
        return ColocatedReplica(self, number, seat, rank)

    def route(self, request: Request, blocks: Sequence[int], now_ps: int) -> int:
        """Choose a replica for a request."""
        view = self.view
        self.loads.catch_up()
        view.now_ps = now_ps
        view.blocks = blocks
        view.match = self.tree.match(blocks) if blocks and self.keeps_blocks else NOTHING
        return self.choose(request, view)

    def submit(self, job: Job, number: int) -> None:
        """Put a request in the queue of the replica that has just been chosen for it."""
        request = job.request
        job.routed_ps = self.clock.now
        job.is_colocated = True
        job.prefill_replica = self.first_prefill + number
        job.decode_replica = self.first_decode + number
        saved = self.saved(self.view.match.depth(number), request.input_tokens)
        job.estimate_tokens = request.input_tokens - saved + request.output_tokens
        self.loads.choose(number, job.estimate_tokens)
        blocks = self.full_blocks(job.blocks, request)
        if self.lookahead:
            self.replicas[number].submit(DraftedSequence(job, self.key(request), blocks, self.lookahead))
        else:
            self.replicas[number].submit(Running(job, self.key(request), blocks))

    def leave(self, job: Job) -> None:
        """The user of a request has left."""
        number = job.prefill_replica - self.first_prefill
        self.loads.done(number, job.estimate_tokens)
        self.replicas[number].leave(job)

    def full_blocks(self, blocks: Sequence[int], request: Request) -> Sequence[int]:
        """The blocks of a prompt that later prompts may share."""
        return blocks[: request.input_tokens // self.block_tokens] if self.keeps_blocks else NO_BLOCKS

    def kept_blocks(self, request: Request) -> Sequence[int]:
        """The blocks of a prompt that are kept once it is computed."""
        return self.full_blocks(request.blocks, request)

    def saved(self, blocks: int, tokens: int) -> int:
        """Tokens that need no computing thanks to cached blocks; one must run to give the next token."""
        return min(blocks * self.block_tokens, tokens - 1)

    def own_pages(self, blocks: Sequence[int], tokens: int) -> int:
        """Pages of a sequence beside its shared blocks."""
        return max(self.kv_pages(tokens) - len(blocks) * self.block_tokens // self.page_tokens, 0)

    def first_pages(self, sequence: Running) -> int:
        """Pages that a sequence takes beside its shared blocks when it is let in."""
        request = sequence.job.request
        whole = request.input_tokens + request.output_tokens
        grown = whole if self.batching.reserves_whole else min(sequence.total + self.lookahead, whole)
        return self.own_pages(sequence.blocks, grown)

    def holds(self, request: Request, blocks: Sequence[int]) -> bool:
        """Whether a replica has room for a whole sequence when it has nothing else to do."""
        shared = self.full_blocks(blocks, request)
        pages = self.own_pages(shared, request.input_tokens + request.output_tokens)
        own = -(-pages * self.page_tokens // self.block_tokens)
        return len(shared) + own <= self.capacity_blocks
