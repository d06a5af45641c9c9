"""Overlay seeded, time-shifted copies of a trace, to fill a larger cluster with the same kind of users.

Model: copy c is the trace rotated: each request moves by the same uniform draw of the trace's span, and
what would pass the end comes in at the beginning. So the load is N times the trace's at all times,
and stays as steady as the trace. Copy 0 is not moved. Block ids of copies are kept apart, but for the first
`shared_blocks` blocks of each request, which all copies have in common (a system prompt, say).
Ignores: a session that is cut by the rotation sends its later turns first; with sessions of minutes
in a trace of an hour these are few.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from sim.base.errors import UnsupportedError
from sim.workload.request import NO_BLOCKS, Arrival

Ints = npt.NDArray[np.int64]

CHUNK = 8192
LONGEST_PS = 2**61


@dataclass(frozen=True, slots=True)
class CompactTrace:
    """A trace in arrays: instants counted from the first, all block ids in one row, all below `ids_end`."""

    first_ps: int
    span_ps: int
    at_ps: Ints
    input_tokens: list[int]
    output_tokens: list[int]
    ids: Ints
    starts: list[int]
    ids_end: int


def overlay(
    arrivals: Iterable[Arrival], copies: int, shared_blocks: int, random: np.random.Generator
) -> Iterator[Arrival]:
    """Yield the requests of all copies in order of (time, copy, place in the trace)."""
    trace = compact(arrivals, copies)
    shifts = np.concatenate([[0], random.integers(0, trace.span_ps, copies - 1)]).astype(np.int64)
    twice = np.concatenate([trace.at_ps, trace.at_ps + trace.span_ps])
    count = len(trace.at_ps)
    windows = max(1, count * copies // CHUNK)
    edges = [trace.span_ps * k // windows for k in range(windows + 1)]
    for begin_ps, end_ps in pairwise(edges):
        lows = np.searchsorted(twice, begin_ps - shifts + trace.span_ps)
        counts = np.searchsorted(twice, end_ps - shifts + trace.span_ps) - lows
        copy = np.repeat(np.arange(copies), counts)
        place = np.arange(len(copy)) + np.repeat(lows - (np.cumsum(counts) - counts), counts)
        at = twice[place] + shifts[copy] - trace.span_ps
        order = np.argsort(at, kind="stable")
        moved = zip(at[order].tolist(), copy[order].tolist(), (place[order] % count).tolist(), strict=True)
        for at_ps, number, row in moved:
            blocks = blocks_of_copy(trace, row, number, shared_blocks)
            yield trace.first_ps + at_ps, trace.input_tokens[row], trace.output_tokens[row], blocks


def blocks_of_copy(
    trace: CompactTrace, row: int, copy: int, shared_blocks: int
) -> list[int] | tuple[int, ...]:
    """Return the block ids of a request in a copy; those after the shared ones are the copy's own."""
    begin, end = trace.starts[row], trace.starts[row + 1]
    if begin == end:
        return NO_BLOCKS
    ids: list[int] = trace.ids[begin:end].tolist()
    if copy:
        own = copy * trace.ids_end
        ids[shared_blocks:] = (trace.ids[begin + shared_blocks : end] + own).tolist()
    return ids


def compact(arrivals: Iterable[Arrival], copies: int) -> CompactTrace:
    """Load arrivals into arrays. The span ends one mean gap after the last arrival."""
    times: list[int] = []
    given, made, starts = [], [], [0]
    ids: list[int] = []
    for at_ps, input_tokens, output_tokens, blocks in arrivals:
        times.append(at_ps)
        given.append(input_tokens)
        made.append(output_tokens)
        ids.extend(blocks)
        starts.append(len(ids))
    span_ps = times[-1] - times[0]
    span_ps += span_ps // max(1, len(times) - 1) or 1
    if span_ps > LONGEST_PS:
        raise UnsupportedError(
            "overlaying copies of a trace of more than 26 days", "workload.limit, or a shorter trace"
        )
    if ids and (
        min(ids) < 0 or max(ids) >= 2**62 // copies
    ):  # hashes as ids: leave room to tell copies apart
        names: dict[int, int] = {}
        ids = [names.setdefault(block, len(names)) for block in ids]
    at = np.array([at_ps - times[0] for at_ps in times], dtype=np.int64)
    ids_end = max(ids, default=-1) + 1
    return CompactTrace(times[0], span_ps, at, given, made, np.array(ids, dtype=np.int64), starts, ids_end)
