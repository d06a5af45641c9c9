"""`sim trace`: what is in a trace, and fetching public ones."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sim.base.errors import Advice, ConfigError, listed, suggest
from sim.base.units import show as shown
from sim.cli.trouble import say
from sim.report.text import Line, show
from sim.results.store import json_text
from sim.results.words import aligned, number, whole
from sim.workload.errors import TraceError
from sim.workload.info import LengthStats, ReuseStats, TraceInfo, trace_info
from sim.workload.library import fetch, find_trace, known_as
from sim.workload.readers import guess_format, reader
from sim.workload.source import TraceFile
from sim.workload.tracerows import ReadRules

COLUMNS: tuple[str, ...] = ("mean", "p50", "p90", "p99", "max")


def describe(wanted: str, format_name: str, block_tokens: int | None, as_json: bool) -> None:
    """Show what is in a trace: on a screen, or as JSON."""
    path = find_trace(wanted)
    kind, known = _format_of(path, format_name), known_as(path)
    tokens = block_tokens or (known.block_tokens if known else ReadRules().block_tokens)
    try:
        info = trace_info(wanted, kind, ReadRules(block_tokens=tokens))
    except TraceError as wrong:
        if path.is_dir():
            raise
        hint = f"{wrong.hint}\n  hint: it was read as {kind}; {_formats()}"
        raise TraceError(wrong.file, wrong.line, wrong.problem, hint) from None
    doubts = [*_bad_rows(info), *info.advice]
    if as_json:
        sys.stdout.write(json_text({**figures(info), "warnings": [asdict(doubt) for doubt in doubts]}))
        return
    show(list(_screen(info)), sys.stdout)
    for doubt in doubts:
        say(f"! {doubt}")


def _format_of(path: Path, named: str) -> str:
    """The format to read a trace in: as named, or as its first line tells."""
    if named != "auto":
        if named not in reader and ":" not in named:
            near = suggest(named, reader.names())
            hint = f"did you mean '{near}'? {_formats()}" if near else _formats()
            raise ConfigError(f"--format {named}", None, None, problem="unknown trace format", hint=hint)
        return named
    try:
        return guess_format(TraceFile(path))
    except TraceError as unclear:
        if unclear.line is None:
            raise
        raise TraceError(unclear.file, unclear.line, unclear.problem, f"name it: {_formats()}") from None


def _formats() -> str:
    """What `--format` may be."""
    return f"--format takes {listed(reader.names(), 'or')}"


def fetch_trace(name: str) -> None:
    """Fetch a trace, and say where it lies."""
    path = fetch(name)
    show([[(str(path), "")]], sys.stdout)
    say(f"fetched, hash checked; use it as `workload.trace: {name}`")


def figures(info: TraceInfo) -> dict[str, Any]:
    """Everything that is known of a trace, for machines."""
    found = {key: value for key, value in asdict(info).items() if key != "advice"}
    known = info.known
    return {
        **found,
        "path": str(info.path),
        "known": None if known is None else {"name": known.name, "source": known.source},
        "is_verified": info.is_verified,
    }


def _bad_rows(info: TraceInfo) -> Iterator[Advice]:
    if info.skipped_rows:
        first = info.bad_rows[0]
        count = f"{whole(info.skipped_rows)} {'row' if info.skipped_rows == 1 else 'rows'} cannot be used"
        yield Advice(f"{count}, first line {first.line}: {first.problem}", first.hint)


def _screen(info: TraceInfo) -> Iterator[Line]:
    yield [(str(info.path), "bold"), (f"   read as {info.format}", "dim")]
    if info.known is not None:
        mark = ("✓", "bold green") if info.is_verified else ("✗", "bold red")
        state = "is" if info.is_verified else "is not, by its hash,"
        yield [mark, (f" {state} {info.known.name}: {info.known.source}", "")]
    yield from _times(info)
    yield from _reuse(info.reuse)
    if info.extra_keys:
        yield [(f"  more columns, not used: {', '.join(info.extra_keys)}", "dim")]
    yield []
    lengths = (_row("input tokens", info.input_tokens), _row("output tokens", info.output_tokens))
    for line in aligned([["", *COLUMNS], *lengths], left=1):
        yield [(f"  {line.rstrip()}", "")]


def _times(info: TraceInfo) -> Iterator[Line]:
    count = f"{whole(info.rows)} {'request' if info.rows == 1 else 'requests'}"
    if info.mean_rate_per_s is None:
        yield [(f"  {count} at one instant", "")]
        return
    peak = f"{number(info.peak_minute_rate_per_s)} in the busiest minute"
    yield [(f"  {count} in {number(info.span_s)} s: {number(info.mean_rate_per_s)} requests/s, {peak}", "")]
    if info.tick_ps is not None:
        yield [(f"  arrivals in ticks of {shown(info.tick_ps, 'time')}", "")]
    elif info.gap_cv is not None:
        yield [(f"  coefficient of variation of the gaps {number(info.gap_cv)} (a Poisson stream has 1)", "")]


def _reuse(reuse: ReuseStats | None) -> Iterator[Line]:
    if reuse is None:
        yield [("  no block ids: nothing can be reused", "")]
        return
    blocks = f"{whole(reuse.blocks)} blocks of {whole(reuse.block_tokens)} tokens"
    yield [(f"  {blocks}, {number(100 * reuse.seen_before_fraction)} % seen before", "")]
    hits = number(100 * reuse.token_hit_fraction)
    yield [(f"  a cache without limit would find {hits} % of the prompt tokens", "")]


def _row(title: str, lengths: LengthStats) -> list[str]:
    return [title, *(number(getattr(lengths, column)) for column in COLUMNS)]
