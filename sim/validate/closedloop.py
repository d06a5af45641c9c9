"""One replica under a fixed number of users: what they see, and how much comes out.

Model: each of `users` sends a request, waits for its last token and sends the next at once, until `requests`
have been sent; with as many users as requests, all are queued at once (an offline run). The replica batches
continuously. A request is let in, first come, first served, when its whole sequence fits the KV memory. A
step computes prompts up to the token budget, in chunks or whole, and one token for each sequence that
decodes, beside the prompts or only without them. Steps without prompts are taken in closed form until the
next sequence ends or a request is there. The first token comes at the end of the step that computes the last
of a prompt. A request takes `request_time_ps` to reach the replica, and nothing waits for it meanwhile.
Lengths are drawn evenly from `shortest` of the nominal length up to it.
Units: picoseconds and tokens. Source: iteration-level scheduling of Yu et al., Orca (OSDI 2022).
Ignores: preemption, prefix caches, and everything outside of the replica.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from statistics import fmean

from sim.base.streams import Streams
from sim.timing.timing import Chunk, DecodeTable, Timing

PS_PER_MS = 10**9
PS_PER_S = 10**12


@dataclass(frozen=True, slots=True)
class Rule:
    """How a replica fills its steps.

    `token_budget` bounds the new tokens of a step, and a longer prompt is cut (`is_chunked`) or runs alone.
    `mixes` says that sequences decode beside prompts.
    """

    token_budget: int
    max_sequences: int
    is_chunked: bool
    mixes: bool


@dataclass(frozen=True, slots=True)
class Replica:
    """What serves: times, how steps are filled, and room for KV.

    The host takes `prefill_gap_ps` before a step with prompts and `step_gap_ps` before one without. Requests
    take `request_time_ps` to get in, beside what the replica does.
    """

    timing: Timing
    rule: Rule
    kv_tokens: int
    prefill_gap_ps: int = 0
    step_gap_ps: int = 0
    request_time_ps: int = 0
    prepares_ahead: bool = False


@dataclass(frozen=True, slots=True)
class Load:
    """Who asks: users, requests in all, nominal lengths, and how much shorter they may be."""

    users: int
    requests: int
    input_tokens: int
    output_tokens: int
    shortest: float = 1.0

    def lengths(self, seed: int = 1) -> list[tuple[int, int]]:
        """Input and output tokens of each request."""
        draw = Streams(seed).stream("closed-loop")
        columns = []
        for nominal in (self.input_tokens, self.output_tokens):
            least = max(1, round(nominal * self.shortest))
            columns.append(draw.integers(least, nominal + 1, size=self.requests).tolist())
        return list(zip(*columns, strict=True))


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of it: means over the requests, and output tokens per second of the whole run."""

    ttft_ps: float
    tpot_ps: float
    output_tokens_per_s: float


class Request:
    """A request on its way."""

    __slots__ = ("done_tokens", "ends_at", "first_ps", "input_tokens", "output_tokens", "sent_ps")

    def __init__(self, sent_ps: int, input_tokens: int, output_tokens: int) -> None:
        self.sent_ps, self.input_tokens, self.output_tokens = sent_ps, input_tokens, output_tokens
        self.done_tokens = self.first_ps = self.ends_at = 0

    @property
    def tokens(self) -> int:
        """Tokens of the whole sequence."""
        return self.input_tokens + self.output_tokens


class ClosedLoop:
    """A run of a replica under its users."""

    def __init__(self, replica: Replica, load: Load) -> None:
        self.replica = replica
        self.table: DecodeTable = replica.timing.decode_table(replica.rule.max_sequences).after(
            replica.step_gap_ps
        )
        lengths = load.lengths()
        self.to_send = deque(lengths[load.users :])
        self.waiting = deque(Request(0, *pair) for pair in lengths[: load.users])
        self.under_way: deque[Request] = deque()
        self.running: list[tuple[int, int, Request]] = []
        self.now = self.closed_ps = self.tokens_each = self.context = self.held = self.joined = 0
        self.ttft_ps: list[int] = []
        self.tpot_ps: list[float] = []
        self.output_tokens = sum(output for _, output in lengths)

    def run(self) -> Seen:
        """Serve all requests."""
        while self.waiting or self.under_way or self.running:
            if not (self.under_way or self.running):
                self.now = self.closed_ps = max(self.now, self._next_ps())
            self._admit()
            chunks = self._chunks()
            if chunks:
                self._mixed(chunks)
            else:
                self._decode()
        return Seen(
            fmean(self.ttft_ps),
            fmean(self.tpot_ps) if self.tpot_ps else 0.0,
            self.output_tokens * PS_PER_S / self.now,
        )

    def _admit(self) -> None:
        """Let in who fits."""
        rule = self.replica.rule
        while self._is_there() and len(self.under_way) + len(self.running) < rule.max_sequences:
            if self.held + self.waiting[0].tokens > self.replica.kv_tokens:
                assert self.held, "checked by `fits` before"
                return
            request = self.waiting.popleft()
            self.held += request.tokens
            self.under_way.append(request)

    def _next_ps(self) -> int:
        """When the first of those who wait is there."""
        return self.waiting[0].sent_ps + self.replica.request_time_ps

    def _is_there(self) -> bool:
        """Whether somebody waits at the replica for the next step."""
        return bool(self.waiting) and self._next_ps() <= self.closed_ps

    def _close(self, ahead_ps: int) -> None:
        """The next step takes who has come until the last one began, or until now where none is prepared."""
        self.closed_ps = ahead_ps if self.replica.prepares_ahead else self.now

    def _chunks(self) -> list[tuple[Request, Chunk]]:
        """What of which prompts the next step computes."""
        rule = self.replica.rule
        budget = rule.token_budget - (len(self.running) if rule.mixes else 0)
        chunks: list[tuple[Request, Chunk]] = []
        for request in self.under_way:
            left = request.input_tokens - request.done_tokens
            if left > budget:
                is_cut = rule.is_chunked and budget > 0
                left = budget if is_cut else left if not chunks and budget > 0 else 0
            if not left:
                break
            chunks.append((request, (left, request.done_tokens)))
            budget -= left
            if budget <= 0:
                break
        return chunks

    def _mixed(self, chunks: Sequence[tuple[Request, Chunk]]) -> None:
        """One step with prompts."""
        is_mixed = self.replica.rule.mixes and bool(self.running)
        batch = len(self.running) if is_mixed else 0
        parts = [chunk for _, chunk in chunks]
        timing, start_ps = self.replica.timing, self.now
        self.now += self.replica.prefill_gap_ps
        self.now += timing.mixed_ps(parts, batch, self.context) if batch else timing.prefill_ps(parts)
        self._close(start_ps)
        if is_mixed:
            self._advance(1)
        for request, (new, _) in chunks:
            request.done_tokens += new
            if request.done_tokens == request.input_tokens:
                self.under_way.popleft()
                self._first_token(request)

    def _first_token(self, request: Request) -> None:
        request.first_ps = self.now
        self.ttft_ps.append(self.now - request.sent_ps)
        if request.output_tokens == 1:
            self._end(request)
            return
        request.ends_at = self.tokens_each + request.output_tokens - 1
        self.joined += 1
        self.context += request.input_tokens + 1
        heappush(self.running, (request.ends_at, self.joined, request))

    def _decode(self) -> None:
        """Steps until the next sequence ends, or until the end of the one in which a request arrives."""
        batch, steps = len(self.running), self.running[0][0] - self.tokens_each
        first, growth = self.table.step_ps(batch, self.context), self.table.per_token_ps[batch] * batch
        if self.waiting and self._next_ps() > self.closed_ps:
            left_ps = self._next_ps() - self.now
            ahead = 1 if self.replica.prepares_ahead else 0
            steps = 1 + bisect_left(
                range(1, steps), left_ps, key=lambda count: _together(first, growth, count - ahead)
            )
        start_ps = self.now + _together(first, growth, steps - 1)
        self.now += _together(first, growth, steps)
        self._close(start_ps)
        self._advance(steps)

    def _advance(self, steps: int) -> None:
        """Every running sequence has got so many tokens more; some end."""
        self.tokens_each += steps
        self.context += steps * len(self.running)
        while self.running and self.running[0][0] == self.tokens_each:
            request = heappop(self.running)[2]
            self.context -= request.tokens
            self.tpot_ps.append((self.now - request.first_ps) / (request.output_tokens - 1))
            self._end(request)

    def _end(self, request: Request) -> None:
        """A user has its answer, and sends its next request."""
        self.held -= request.tokens
        if self.to_send:
            self.waiting.append(Request(self.now, *self.to_send.popleft()))


def _together(first_ps: int, growth_ps: int, steps: int) -> int:
    """So many steps, each longer than the last by the same."""
    return steps * first_ps + growth_ps * (steps * (steps - 1) // 2)


def fits(replica: Replica, load: Load) -> bool:
    """Whether the longest sequence fits the replica's memory."""
    return load.input_tokens + load.output_tokens <= replica.kv_tokens
