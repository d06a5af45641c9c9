"""Recorded sessions: formats of which a file is read into turns, with the time that users took in between.

A format is a function that yields the recorded turns of each session, in order of the file. In the loop a
turn is sent its think time after the answer before it; what the recorded system took does not matter.
Model of formats: `weka`, JSON lines of the WEKA coding-agent traces, one session each: think_time in s (where
it is missing: the gap to the end of the answer before); blocks of 64 tokens, ids local to the session;
requests of a sub-agent come one after the other where it was started, and the time that the main agent waited
for it is taken off its think time. `turns`, JSON lines of one turn each with session_id and timestamp in ms,
such as the derived mini-SWE file: think time is the recorded gap to the turn before, which holds its answer
too.
Ignores: sub-agents that ran beside each other; blocks that sessions share, where ids are local; sessions that
are marked as copies of others, and turns without output.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sim.base.errors import ValueProblem
from sim.base.registry import Registry
from sim.workload.readers import json_object
from sim.workload.request import NO_BLOCKS
from sim.workload.rows import PS_PER_MS, PS_PER_S, hash_ids, instant_ps, required, tokens
from sim.workload.session import Session, Turn

if TYPE_CHECKING:
    from sim.config.sessions import Sessions
    from sim.workload.source import TraceFile

WEKA_BLOCK_TOKENS = 64
OWN = 2**40
PARTIAL = 2**39


@dataclass(frozen=True)
class Recorded:
    """A session of a file: its line, when it began in the recording (None: not said), and its turns."""

    line: int
    at_ps: int | None
    turns: Sequence[Turn]


Format = Callable[["TraceFile"], Iterator[Recorded]]
session_format: Registry[Format] = Registry("session format")


def _objects(source: TraceFile) -> Iterator[tuple[int, dict[str, Any]]]:
    for line, text in enumerate(source.lines(), 1):
        if text and not text.isspace():
            try:
                yield line, json_object(text)
            except ValueProblem as bad:
                raise source.error(line, bad.problem, bad.hint or "") from None


@session_format("weka")
def weka(source: TraceFile) -> Iterator[Recorded]:
    """JSON lines of the WEKA coding-agent traces: a session each, with think times and sub-agents."""
    number = 0
    for line, fields in _objects(source):
        if fields.get("duplicate_of") is not None:
            continue
        try:
            turns = tuple(_weka_turns(required(fields, "requests"), number * OWN))
        except ValueProblem as bad:
            raise source.error(line, bad.problem, bad.hint or "") from None
        if turns:
            yield Recorded(line, None, turns)
            number += 1


def _weka_turns(requests: Sequence[Mapping[str, Any]], own: int) -> Iterator[Turn]:
    """The turns of a session, those of its sub-agents where they began."""
    ended_ps, waited_ps, turn = 0, 0, 0
    for entry in requests:
        is_sub = "requests" in entry
        inner_ended_ps = 0
        for fields in entry["requests"] if is_sub else (entry,):
            at_ps = instant_ps(required(fields, "t"), "t", PS_PER_S)
            took_ps = instant_ps(fields.get("api_time") or 0, "api_time", PS_PER_S)
            before_ps = inner_ended_ps if is_sub else ended_ps
            think = fields.get("think_time")
            gap_ps = max(at_ps - before_ps, 0)
            think_ps = gap_ps if think is None else instant_ps(think, "think_time", PS_PER_S)
            if is_sub:
                inner_ended_ps = at_ps + took_ps
            else:
                think_ps, waited_ps, ended_ps = max(think_ps - waited_ps, 0), 0, at_ps + took_ps
            if fields.get("out"):
                given = tokens(required(fields, "in"), "in")
                blocks = _weka_blocks(fields, given, own, turn)
                yield Turn(think_ps, given, tokens(fields["out"], "out"), blocks)
                turn += 1
        waited_ps += inner_ended_ps


def _weka_blocks(fields: Mapping[str, Any], given: int, own: int, turn: int) -> tuple[int, ...]:
    """Ids of a prompt's blocks: its runs, or its list, and one for the last block where it is not full."""
    ids = hash_ids(fields.get("hash_ids"), "hash_ids")
    if ids is None:
        runs = fields.get("hash_runs") or ()
        ids = [first + i for first, length in runs for i in range(length)]
    full = given // WEKA_BLOCK_TOKENS
    if len(ids) != full:
        raise ValueProblem(
            f"{len(ids)} hash ids for {given} tokens; {full} blocks of {WEKA_BLOCK_TOKENS} are full",
            "mend the session, or leave it out",
        )
    partial = (own + PARTIAL + turn,) if given % WEKA_BLOCK_TOKENS else NO_BLOCKS
    return (*[own + id for id in ids], *partial)


@session_format("turns")
def turns(source: TraceFile) -> Iterator[Recorded]:
    """JSON lines of one turn each: session_id, timestamp in ms, input_length, output_length, hash_ids."""
    sessions: dict[Any, tuple[int, int, list[Turn]]] = {}
    last_ps: dict[Any, int] = {}
    for line, fields in _objects(source):
        try:
            key = required(fields, "session_id")
            at_ps = instant_ps(required(fields, "timestamp"), "timestamp", PS_PER_MS)
            if at_ps < last_ps.get(key, 0):
                raise ValueProblem("comes before the turn above it of its session", "sort the file by time")
            turn = Turn(
                at_ps - last_ps.get(key, at_ps),
                tokens(required(fields, "input_length"), "input_length"),
                tokens(required(fields, "output_length"), "output_length"),
                tuple(hash_ids(fields.get("hash_ids"), "hash_ids") or NO_BLOCKS),
            )
        except ValueProblem as bad:
            raise source.error(line, bad.problem, bad.hint or "") from None
        sessions.setdefault(key, (line, at_ps, []))[2].append(turn)
        last_ps[key] = at_ps
    for line, at_ps, of_session in sessions.values():
        yield Recorded(line, at_ps, tuple(of_session))


def guess_session_format(source: TraceFile) -> str:
    """Tell the format of a file from its first line."""
    try:
        first = json.loads(source.first_line())
    except ValueError:
        first = None
    if isinstance(first, dict) and "requests" in first:
        return "weka"
    if isinstance(first, dict) and "session_id" in first:
        return "turns"
    names = ", ".join(session_format.names())
    raise source.error(1, "no sessions in the first line", f"set workload.sessions.format to one of {names}")


@dataclass(frozen=True)
class RecordedSessions:
    """The sessions of a file, once, in its order or in that of their beginning."""

    source: TraceFile
    format: str
    form: Sessions
    streams: Any
    block_tokens: int
    limit: int | None = None

    @property
    def users(self) -> int | None:
        """Users in flight."""
        return self.form.users

    @property
    def ramp_up_ps(self) -> int:
        """Over which time the users come."""
        return self.form.ramp_up

    def sessions(self) -> Iterator[Session]:
        """The sessions of the file, once."""
        starts = self._starts()
        recorded = session_format[self.format](self.source)
        if self.form.users is None and starts is None:
            recorded = iter(sorted(recorded, key=lambda one: (self._at(one), one.line)))
        for number, one in enumerate(recorded):
            self._check(one)
            at_ps = next(starts) if starts is not None else None if self.form.users else self._at(one)
            yield Session(number, at_ps, (self._paced(turn, k) for k, turn in enumerate(one.turns)))

    def _starts(self) -> Iterator[int] | None:
        from sim.workload.arrivals import arrival_chunks  # noqa: PLC0415  needs numpy

        if self.form.arrivals is None:
            return None
        chunks = arrival_chunks(self.form.arrivals, self.streams.stream("workload.arrivals"))
        return (at_ps for chunk in chunks for at_ps in chunk.tolist())

    def _at(self, one: Recorded) -> int:
        if one.at_ps is None:
            problem = "these sessions do not say when they began"
            hint = "set workload.sessions.users, or workload.sessions.arrivals"
            raise self.source.error(one.line, problem, hint)
        return one.at_ps

    def _paced(self, turn: Turn, place: int) -> Turn:
        """A turn with its time to think, cut or replaced as the form says; the first one has none."""
        think_ps = turn.think_ps if self.form.think is None else self.form.think
        if self.form.max_think is not None:
            think_ps = min(think_ps, self.form.max_think)
        return turn._replace(think_ps=think_ps if place else 0)

    def _check(self, one: Recorded) -> None:
        for turn in one.turns:
            wanted = -(-turn.input_tokens // self.block_tokens)
            if turn.blocks and len(turn.blocks) != wanted:
                problem = f"{len(turn.blocks)} hash_ids for {turn.input_tokens} input tokens"
                hint = f"blocks of {self.block_tokens} tokens need {wanted}: set workload.block_tokens"
                raise self.source.error(one.line, problem, hint)

    def describe(self) -> str:
        """Say in one line what is played."""
        who = f", {self.form.users} users" if self.form.users is not None else ""
        return f"sessions of {self.source.path.name} ({self.format}) in a closed loop{who}"
