"""A replica that computes prompts and decodes: step after step, each filled as its batching rule allows.

Model: at a boundary the rule (sim.serving.batching) says how much of prompts the next step may compute.
Prompts under way come first, then waiting ones in the pool's order, each if its KV fits; none overtakes one
that does not. A step with prompts lasts what the timing says of it and what the host does before; a finished
prompt has its next token then, and decodes from the next step on. Where no prompt can be computed, decode
steps follow one another until something changes: they are taken in closed form, as in sim.serving.decode.

Memory is taken for the prompt when it is let in, and for the output either with it (whole) or page by page
(grow). A decode step that finds no page puts the last sequence of the order aside: it gives back what it
holds, waits in its place, and computes prompt and output anew; what its full blocks left in the cache it
finds again (or waits in host memory: sim.serving.swapping). While `spare_blocks` would not stay free nobody
is let in, unless the replica is empty.
Source: the scheduler of vLLM v1 (vllm/v1/core/sched/scheduler.py).
Ignores: memory that chunks take one by one: a prompt takes its own at once.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Generator
from heapq import heappop
from typing import TYPE_CHECKING

from simpy import Event

from sim.clock import Errand, Moment
from sim.network.waiting import Delivery
from sim.serving.background import Background
from sim.serving.batching import Allowance, Load
from sim.serving.job import UNFINISHED, Job
from sim.serving.plan import Seat
from sim.serving.segment import Segment, gap_row
from sim.serving.sequence import Chunks, Sequence
from sim.serving.tenants import Tenants
from sim.tables.schema import NOT_YET
from sim.timing.timing import Chunk

if TYPE_CHECKING:
    from sim.serving.colocated import ColocatedPool


class ColocatedReplica(Tenants):
    """One copy of the model. `_segment` are the decode steps under way, if any."""

    def __init__(self, pool: ColocatedPool, number: int, seat: Seat, rank: int) -> None:
        super().__init__(pool, number, seat)
        self.nics: Background | None = None
        self.busy_ps = self.requests = self.tokens = self.prompt_tokens = 0
        self.steps = self.decoded = self.step_tokens = self.decoding_ps = 0
        self._host = pool.plan.host
        self._rank = rank
        self._record = pool.log.segment
        self._lengths: set[int] | None = set() if pool.plan.first_length_ps else None
        self._segment: Segment | None = None
        self._busy_from_ps = NOT_YET
        self._has_copies = False
        self._has_gone = False
        self._alarm: Moment | None = None
        self._idle: Moment | None = None
        Errand(self.serve())

    def submit(self, sequence: Sequence) -> None:
        """Let a request wait in its place; steps under way end at the next boundary if it may get in."""
        insort(self.waiting, sequence)
        idle, self._idle = self._idle, None
        if idle is not None:
            self.clock.ring(idle, self._rank)
        elif len(self._running) < self.pool.limits.max_sequences:
            self._cut_short()

    def leave(self, job: Job) -> None:
        """Let go of a request whose user has left: at once if it waits, else at the end of the step."""
        staying = [sequence for sequence in self.waiting if sequence.job is not job]
        self._has_gone |= len(staying) == len(self.waiting)
        self.waiting = staying
        self._cut_short()

    def _cut_short(self) -> None:
        """End steps under way at the next boundary."""
        segment = self._segment
        if self._alarm is not None and segment is not None and segment.cut(self.clock.now):
            self._alarm = self.clock.move(self._alarm, segment.ends_ps, self._rank)

    def busy_by(self, now_ps: int) -> int:
        """Time with work up to now, the part of a step under way included."""
        return self.busy_ps + (now_ps - self._busy_from_ps if self._busy_from_ps >= 0 else 0)

    def serve(self) -> Generator[Event, Delivery, None]:
        """Take step after step, for as long as the simulation runs."""
        while True:
            self._gave_way = self._has_copies = False
            chunks, mixes = self._fill()
            if not chunks:
                self._make_room()
            if self._has_copies:
                yield from self._copy()
            if not chunks and not self._running:
                if self._gave_way:
                    continue  # nobody is left: now there is room for the first of those that wait
                if self.nics is not None:
                    self.nics.rest()
                self._idle = Moment(self.clock)
                yield self._idle
                continue
            self._busy_from_ps = self.clock.now
            if chunks:
                done = self._begin_prompts(chunks, mixes and bool(self._running))
            else:
                done = self._alarm = self._begin_decode()
            yield done
            self._end(chunks)

    def _end(self, chunks: Chunks) -> None:
        """Account for what has been done."""
        spent_ps = self.clock.now - self._busy_from_ps
        self._alarm, self._busy_from_ps = None, NOT_YET
        self.busy_ps += spent_ps
        self.decoding_ps += 0 if chunks else spent_ps
        if self.nics is not None:
            self.nics.end(self._crossing_bytes(chunks))
        if self._segment is not None:
            self._end_steps(self._segment)
        self._end_prompts(chunks)

    # What a step computes.

    def _fill(self) -> tuple[Chunks, bool]:
        """Choose the prompts of the next step; also whether sequences decode beside them."""
        chunks: Chunks = []
        if not self.waiting and not self._under_way:
            return chunks, False
        allowance = self._allowance()
        if allowance.mixes:
            if self._make_room():
                allowance = self._allowance()
            self._take_pages(1)
        left = allowance.prompt_tokens
        if allowance.mixes:
            left -= len(self._running) * self.pool.lookahead
        for sequence in self._under_way:
            tokens = min(sequence.left, left, self.pool.limits.chunk_tokens)
            if tokens <= 0:
                break
            chunks.append((sequence, tokens))
            left -= tokens
        if not self._gave_way:
            self._let_in(chunks, allowance, left)
        return chunks, allowance.mixes

    def _allowance(self) -> Allowance:
        load = Load(len(self._running), len(self._under_way), len(self.waiting))
        return self.pool.rule(load, self.pool.limits)

    def _let_in(self, chunks: Chunks, allowance: Allowance, left: int) -> None:
        """Let waiting prompts in, in order, as long as there are tokens, places and memory."""
        waiting, limits = self.waiting, self.pool.limits
        places = min(allowance.prompts, limits.max_sequences - len(self._running) - len(self._under_way))
        while waiting and places > 0 and left > 0:
            sequence = waiting[0]
            if sequence.kept_pages:
                if not self._fetch(sequence):
                    return
                left, places = left - allowance.mixes * (self.pool.lookahead + 1), places - 1
                continue
            match = self.pool.tree.match(sequence.blocks) if sequence.blocks else None
            hits = match.depth(self.number) if match is not None else 0
            new = sequence.total - self.pool.saved(hits, sequence.total)
            tokens = min(new, left, limits.chunk_tokens) if allowance.is_chunked else new
            if chunks and tokens > left:
                return
            pages = self.pool.first_pages(sequence)
            sequence.lease = self.pages.admit(sequence.blocks, pages, self._spare_blocks(), match)
            if sequence.lease is None:
                return
            del waiting[0]
            sequence.pages, sequence.left = pages, new
            self._under_way.append(sequence)
            sequence.note_start(new, self.clock.now)
            chunks.append((sequence, tokens))
            left -= tokens
            places -= 1

    def _fetch(self, _sequence: Sequence) -> bool:
        """Let one that waits in host memory in; whether there is room. Here nobody does."""
        return False

    def _copy(self) -> Generator[Event, Delivery, None]:
        """Wait for what is copied before the next step. Here nothing is."""
        yield from ()

    # Steps with prompts.

    def _begin_prompts(self, chunks: Chunks, mixes: bool) -> Moment:
        """Begin a step with prompts; the event is its end."""
        pieces = [(tokens, sequence.total - sequence.left) for sequence, tokens in chunks]
        duration_ps = self._mixed_ps(pieces) if mixes else self.pool.plan.timing.prefill_ps(pieces)
        duration_ps += self._host.prefill_ps
        if self._lengths is not None:
            unseen = {new for new, _ in pieces} - self._lengths
            self._lengths |= unseen
            duration_ps += len(unseen) * self.pool.plan.first_length_ps
        if mixes:
            self._begin_steps(Segment(self.clock.now, 1, duration_ps, 0))
        if self.nics is not None:
            self.nics.begin(self._crossing_bytes(chunks), duration_ps)
        return self.clock.at(self.clock.now + duration_ps, self._rank)

    def _mixed_ps(self, pieces: list[Chunk]) -> int:
        """How long a step lasts that decodes beside prompts."""
        return self.pool.plan.timing.mixed_ps(pieces, len(self._running), self._context)

    def _end_prompts(self, chunks: Chunks) -> None:
        for sequence, tokens in chunks:
            sequence.left -= tokens
            self.prompt_tokens += tokens
            if not sequence.left:
                self._under_way.remove(sequence)
                self._computed(sequence)
        if self._has_gone:
            self._drop_gone()

    def _computed(self, sequence: Sequence) -> None:
        """A prompt, or what was lost of a sequence, is computed: its next token is there."""
        job, now = sequence.job, self.clock.now
        assert sequence.lease is not None
        self.memory.publish(sequence.lease)
        sequence.tokens += 1
        self.tokens += 1
        if job.computed_ps == NOT_YET:
            job.computed_ps = job.reserved_ps = job.kv_arrived_ps = job.first_token_ps = now
        else:
            job.bring_back(now)
            if sequence.tokens == 2:
                job.second_token_ps = now
            elif job.measured:
                self._record(gap_row(self.pool.first_decode + self.number, sequence.last_token_ps, now))
        sequence.last_token_ps = now
        if sequence.tokens == job.request.output_tokens:
            self._finish(sequence)
            return
        self._join(sequence)

    # Decode steps.

    def _begin_decode(self) -> Moment:
        """Plan decode steps up to the first sequence that is done or finds no page."""
        wait_ps = self._host.change_ps if self._is_changed else 0
        most = 1 if self._gave_way or self._has_copies else self._running[0][0] - self._step
        segment = self._planned(self.clock.now + wait_ps, self._affordable(most))
        self._begin_steps(segment)
        if self.nics is not None:
            self.nics.begin(self._crossing_bytes([]), segment.ends_ps - self.clock.now)
        return self.clock.at(segment.ends_ps, self._rank)

    def _planned(self, began_ps: int, steps: int) -> Segment:
        """Decode steps from an instant on."""
        batch, table = len(self._running), self.pool.steps
        first = table.step_ps(batch, self._context)
        return Segment(began_ps, steps, first, table.per_token_ps[batch] * batch)

    def _gained(self, steps: int) -> int:
        """Tokens that the steps just taken gave."""
        return len(self._running) * steps

    def _begin_steps(self, segment: Segment) -> None:
        late = []
        for sequence in self._joining:
            job = sequence.job
            if job.decoding_ps == NOT_YET:
                job.decoding_ps = self.clock.now
            if sequence.tokens == 1:
                job.second_token_ps = segment.began_ps + segment.first_ps
                segment.joined += job.measured
            elif job.measured:
                late.append(sequence.last_token_ps)
        segment.newcomers, segment.late_ps = len(self._joining), tuple(late)
        self._is_changed = False
        self._joining.clear()
        self._segment = segment

    def _end_steps(self, segment: Segment) -> None:
        """Account for decode steps, and let go of the sequences that are done."""
        running, steps = self._running, segment.steps
        batch = len(running)
        for row in segment.rows(self.pool.first_decode + self.number, batch, self._measured, self._token_ps):
            self._record(row)
        self._segment = None
        self.steps += steps
        gained = self._gained(steps)
        self.decoded += batch * steps
        self.step_tokens += gained
        self.tokens += gained
        self._context += gained
        self._step = step = self._step + steps
        self._token_ps = self.clock.now
        self._take_pages(0)
        while running and running[0][0] == step:
            sequence = heappop(running)[2]
            self._context -= sequence.context(step)
            self._measured -= sequence.job.measured
            self._is_changed = True
            self._finish(sequence)

    def _finish(self, sequence: Sequence) -> None:
        self._give_back(sequence)
        if sequence.job.status != UNFINISHED:
            return  # its user left meanwhile
        self.requests += 1
        self.pool.loads.done(self.number, sequence.job.estimate_tokens)
        self.pool.finished(sequence.job)

    def _drop_gone(self) -> None:
        """Let go of sequences whose users have left."""
        self._has_gone = False
        for sequence in [*self._under_way, *(entry[2] for entry in sorted(self._running))]:
            if sequence.job.status != UNFINISHED:
                self._take_out(sequence)

    def _crossing_bytes(self, chunks: Chunks) -> float:
        """What the collectives of the step send out of each NVLink domain."""
        collectives = self.pool.plan.collectives
        assert collectives is not None
        segment = self._segment
        steps = segment.steps * (self.pool.lookahead + 1) if segment is not None else 0
        size = collectives.step_bytes[len(self._running)] * steps
        return size + collectives.token_bytes * sum(tokens for _, tokens in chunks)
