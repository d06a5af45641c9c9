"""Generated sessions: a fixed number of users in flight, or sessions that start by an arrival process.

Model: a prompt of turn k is the system prompt, all prompts and answers before, and new tokens. Full blocks of
it keep their ids from turn to turn; the last block, if it is not full, is one that no other turn has. Blocks
of the system prompt are common to all sessions. Users think for exponentially distributed times, or not at
all. With `concurrency` each request is a session of its own, as benchmark tools ask: no turn extends another.
Units: tokens, picoseconds.
Ignores: context that is cut or summarised, and answers of which a part is not sent back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, count, islice
from typing import TYPE_CHECKING

from sim.base.units import show
from sim.workload.arrivals import arrival_chunks
from sim.workload.lengths import Draw, length_draw
from sim.workload.request import NO_BLOCKS
from sim.workload.session import Session, Turn

if TYPE_CHECKING:
    import numpy as np

    from sim.base.streams import Streams
    from sim.config.scenario import Lengths
    from sim.config.sessions import Sessions

CHUNK = 256
OWN = 2**32
PARTIAL = 2**31
"""Ids of a session's own blocks start at (session + 1) x OWN; of its partial ones, by turn, PARTIAL later."""


@dataclass(frozen=True)
class ConcurrentWorkload:
    """So many requests in flight at any time: the next is sent when one ends."""

    users: int
    input: Lengths
    output: Lengths
    streams: Streams
    think_ps: int = 0
    ramp_up_ps: int = 0
    limit: int | None = None
    block_tokens: int = 512

    def sessions(self) -> Iterator[Session]:
        """One turn each."""
        inputs = _endless(length_draw(self.input, self.streams.stream("workload.input")))
        outputs = _endless(length_draw(self.output, self.streams.stream("workload.output")))
        think = _thinking(self.think_ps, self.streams.stream("workload.think"))
        for number in count():
            pause_ps = think() if number >= self.users else 0
            yield Session(number, None, iter([Turn(pause_ps, next(inputs), next(outputs))]))

    def describe(self) -> str:
        """Say in one line what is generated."""
        lengths = f"{self.input.kind} input and {self.output.kind} output lengths"
        return f"{self.users} requests in flight, {lengths}"


@dataclass(frozen=True)
class GeneratedSessions:
    """Sessions of a form, drawn as they begin; each has streams of its own."""

    form: Sessions
    streams: Streams
    limit: int | None = None
    block_tokens: int = 512

    @property
    def users(self) -> int | None:
        """Users in flight."""
        return self.form.users

    @property
    def ramp_up_ps(self) -> int:
        """Over which time the users come."""
        return self.form.ramp_up

    def sessions(self) -> Iterator[Session]:
        """Sessions without end."""
        starts: Iterator[int | None] = iter(lambda: None, 0)
        if self.form.arrivals is not None:
            chunks = arrival_chunks(self.form.arrivals, self.streams.stream("workload.arrivals"))
            starts = chain.from_iterable(chunk.tolist() for chunk in chunks)
        turns = self.streams.stream("workload.turns")
        for number, starts_ps in enumerate(starts):
            length = self.form.turns or int(turns.geometric(1 / (self.form.mean_turns or 1.0)))
            yield Session(number, starts_ps, islice(self._turns(number), length))

    def _turns(self, number: int) -> Iterator[Turn]:
        """The turns of one session, from streams of its own: their order among sessions does not matter."""
        form, stream = self.form, self.streams.stream
        assert form.input is not None
        assert form.output is not None
        inputs = _endless(length_draw(form.input, stream(f"workload.input.{number}")), 16)
        outputs = _endless(length_draw(form.output, stream(f"workload.output.{number}")), 16)
        think = _thinking(form.think or 0, stream(f"workload.think.{number}"))
        prompt = form.system_tokens
        for turn in count():
            prompt += next(inputs)
            made = next(outputs)
            yield Turn(think() if turn else 0, prompt, made, self._blocks(number, turn, prompt))
            prompt += made

    def _blocks(self, number: int, turn: int, prompt: int) -> tuple[int, ...]:
        full, own = prompt // self.block_tokens, (number + 1) * OWN
        common = min(self.form.system_tokens // self.block_tokens, full)
        partial = (own + PARTIAL + turn,) if prompt % self.block_tokens else NO_BLOCKS
        return (*range(common), *range(own + common, own + full), *partial)

    def describe(self) -> str:
        """Say in one line what is generated."""
        form = self.form
        who = f"{form.users} users" if form.users is not None else "sessions"
        if form.arrivals is not None:
            who = f"sessions at {show(form.arrivals.rate, 'frequency')}"
        turns = f"{form.turns} turns" if form.turns else f"{form.mean_turns:g} turns on average"
        return f"{who} in a closed loop, {turns}"


def _endless(draw: Draw, chunk: int = CHUNK) -> Iterator[int]:
    """Token counts, one after the other."""
    while True:
        yield from draw(chunk).tolist()


def _thinking(mean_ps: int, random: np.random.Generator) -> Callable[[], int]:
    """What draws the next time to think."""
    if not mean_ps:
        return lambda: 0
    return lambda: round(random.exponential(mean_ps))
