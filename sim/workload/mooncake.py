"""The mooncake-conversation generator: chat requests like those of Mooncake's one-hour trace of Kimi.

Model: sessions start as a Poisson process. The first prompt has a fitted length; prompts below 950 tokens
get no second turn. A turn is followed by another, after a fitted gap, with a chance that grows
with the turn. The next prompt *extends* the last one (old prompt, answer, some added tokens) and so has
all its full KV blocks in common, or *edits* it and keeps only the first few. Block 0, the system prompt,
is common to all. At any rate the requests are those of rate / 3.40 independent populations, superposed.
The start is in the steady state: sessions under way then go on, and their earlier blocks are unseen,
as in the trace itself.

Source: Qin et al., Mooncake, FAST 2025, the conversation trace; constants in mooncake_conversation.yaml.
Ignores: the slow drift of the trace's rate over its hour (-18 % to +10 %), users who wait for answers
(gaps run from arrival to arrival), documents shared between sessions, and its 3 s ticks.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING

import numpy as np

from sim.base.units import show
from sim.workload.arrivals import renewal_chunks
from sim.workload.request import Request
from sim.workload.rows import PS_PER_S
from sim.workload.shape import ConversationShape, conversation_shape

if TYPE_CHECKING:
    from sim.base.streams import Streams

BLOCK_TOKENS = 512
CHUNK = 4096
SESSION_IDS = (
    1024  # ids set aside for one session: full blocks by place, then the partial last block of each turn
)
FIRST_TAIL = 512
MOST_TURNS = SESSION_IDS - FIRST_TAIL - 1
LONGEST_PS = 2**62
SESSIONS_PLAYED = 4000


@dataclass(slots=True)
class Session:
    """What must be known of a session to write its next prompt.

    `ids` is the first of its block ids; `stem` the ids of leading blocks that it took over from others.
    """

    input_tokens: int
    ids: int
    stem: tuple[int, ...] = (0,)
    output_tokens: int = 0
    turn: int = 1

    def blocks(self) -> list[int]:
        """Return the ids of the blocks of the prompt. A partial last block is new in each turn."""
        full, rest = divmod(self.input_tokens, BLOCK_TOKENS)
        stem, ids = self.stem, self.ids
        found = [*stem, *range(ids + len(stem), ids + full)] if full > len(stem) else list(stem[:full])
        if rest:
            found.append(ids + FIRST_TAIL + self.turn)
        return found


class Draws:
    """Draws from the fitted distributions, each from a stream of its own, in chunks."""

    def __init__(self, shape: ConversationShape, streams: Streams) -> None:
        self._streams = streams
        self._levels = shape.levels
        self.uniform = self._uniform("choice")
        self.first_input = self._quantiles("first", shape.first_input_quantiles)
        self.output = self._quantiles("output", shape.output_quantiles)
        self.gap_s = self._by_class("gap", shape.gap_s_quantiles_by_class)
        self.added = self._by_class("added", shape.added_quantiles_by_class)
        self.kept = self._quantiles("kept", shape.edit_kept_quantiles)
        self.ratio = self._quantiles("ratio", shape.edit_ratio_quantiles)

    def _uniform(self, purpose: str) -> Iterator[float]:
        random = self._streams.stream(f"workload.conversation.{purpose}")
        return chain.from_iterable(random.random(CHUNK).tolist() for _ in iter(int, 1))

    def _quantiles(self, purpose: str, values: Sequence[float]) -> Iterator[float]:
        random = self._streams.stream(f"workload.conversation.{purpose}")
        levels = self._levels
        return chain.from_iterable(
            np.interp(random.random(CHUNK), levels, values).tolist() for _ in iter(int, 1)
        )

    def _by_class(self, purpose: str, tables: Sequence[Sequence[float]]) -> list[Iterator[float]]:
        return [self._quantiles(f"{purpose}.{number}", values) for number, values in enumerate(tables)]


class ConversationWorkload:
    """Chat requests without end, up to `until_ps` or `limit`; `rate_per_s` None is the trace's own 3.40."""

    block_tokens = BLOCK_TOKENS

    def __init__(
        self,
        streams: Streams,
        rate_per_s: float | None = None,
        *,
        limit: int | None = None,
        until_ps: int | None = None,
    ) -> None:
        self.shape = conversation_shape()
        self.rate_per_s = rate_per_s or self.shape.native_rate_per_s
        self._streams = streams
        self._limit = limit
        self._until_ps = until_ps

    def __iter__(self) -> Iterator[Request]:
        return islice(
            Conversations(self.shape, self._streams, self.rate_per_s, self._until_ps).requests(), self._limit
        )

    def describe(self) -> str:
        """Say in one line what is generated."""
        return f"mooncake-conversation generator at {show(self.rate_per_s, 'frequency')}"


class Conversations:
    """One pass over the workload: the sessions under way, and their next turns in order of time."""

    def __init__(
        self, shape: ConversationShape, streams: Streams, rate_per_s: float, until_ps: int | None
    ) -> None:
        self.shape = shape
        self.rate_per_s = rate_per_s
        self.until_ps = LONGEST_PS if until_ps is None else until_ps
        self.chances = shape.chances
        self.draws = Draws(shape, streams)
        self.random = streams.stream("workload.conversation.sessions")
        self.next_ids = SESSION_IDS
        self.waiting: list[tuple[int, int, Session]] = []

    def requests(self) -> Iterator[Request]:
        """Yield the requests in order of arrival: new sessions merged with next turns of earlier ones."""
        number, waiting = 0, self.waiting
        earlier = self.later_turns(SESSIONS_PLAYED)
        for begins_ps, is_under_way in self._beginnings():
            while waiting and waiting[0][0] <= begins_ps:
                at_ps, _, session = heapq.heappop(waiting)
                self._write_next(session)
                yield self._send(number, at_ps, session)
                number += 1
            if begins_ps >= self.until_ps:
                return
            session = self._begin()
            if is_under_way:
                session.input_tokens, session.turn = earlier[int(next(self.draws.uniform) * len(earlier))]
            yield self._send(number, begins_ps, session)
            number += 1

    def later_turns(self, sessions: int) -> list[tuple[int, int]]:
        """Play sessions unseen; return prompt length and number of each turn after a first one."""
        turns = []
        for _ in range(sessions):
            session = self._begin()
            session.output_tokens = int(next(self.draws.output))
            while self._goes_on(session, self.shape.length_class(session.input_tokens)):
                self._write_next(session)
                session.output_tokens = int(next(self.draws.output))
                turns.append((session.input_tokens, session.turn))
        return turns

    def _beginnings(self) -> Iterator[tuple[int, bool]]:
        """Yield when sessions begin, or show up for the first time since the start (then True).

        Of all requests, the later turns are a fraction p, and of these a share P(gap > t) at time t
        continues what was sent before the start. So Poisson arrivals at the full rate are thinned to 1 - p
        for new sessions and p * P(gap > t) for those; the other later turns come from `waiting`.
        """
        later = self.shape.later_turn_fraction
        for chunk in renewal_chunks(self.rate_per_s, None, self.random):
            level = self.random.random(len(chunk))
            shown = level < (1 - later) + later * self.shape.gap_exceeds(chunk / PS_PER_S)
            yield from zip(chunk[shown].tolist(), (level[shown] >= 1 - later).tolist(), strict=True)

    def _begin(self) -> Session:
        """Begin a session, with block ids of its own."""
        ids = self.next_ids
        self.next_ids += SESSION_IDS
        return Session(int(next(self.draws.first_input)), ids)

    def _send(self, number: int, at_ps: int, session: Session) -> Request:
        """Make the request of the session's present turn, and put down when the next one comes, if any."""
        session.output_tokens = int(next(self.draws.output))
        group = self.shape.length_class(session.input_tokens)
        if self._goes_on(session, group):
            next_ps = at_ps + int(next(self.draws.gap_s[group]) * PS_PER_S)
            if next_ps < self.until_ps:
                heapq.heappush(self.waiting, (next_ps, number, session))
        return Request(number, at_ps, session.input_tokens, session.output_tokens, session.blocks())

    def _goes_on(self, session: Session, group: int) -> bool:
        """Decide whether a turn with a prompt of this class is followed by another."""
        if session.turn == MOST_TURNS or (
            session.turn == 1 and session.input_tokens < self.shape.one_shot_below_tokens
        ):
            return False
        by_class = self.chances[min(session.turn, len(self.chances)) - 1]
        return next(self.draws.uniform) < by_class[group]

    def _write_next(self, session: Session) -> None:
        """Write the next prompt: the last one extended, or edited so that only its first blocks stay."""
        shape, draws = self.shape, self.draws
        before = session.input_tokens
        group = shape.length_class(before)
        if next(draws.uniform) < shape.edit_share_by_class[group]:
            after = before * next(draws.ratio)
            kept = max(1, round(next(draws.kept) * -(-before // BLOCK_TOKENS)))
            session.stem = tuple(session.blocks()[:kept])
            session.ids = self.next_ids
            self.next_ids += SESSION_IDS
        else:
            after = before + session.output_tokens + next(draws.added[group])
        session.input_tokens = min(max(int(after), shape.least_input_tokens), shape.most_input_tokens)
        session.turn += 1
