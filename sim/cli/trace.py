"""`sim trace`: what is in a trace, and fetching public ones."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any

from sim.base.errors import Advice
from sim.cli.tracestats import STATISTICS, TraceStats
from sim.cli.trouble import say
from sim.report.text import Line, show
from sim.results.store import json_text
from sim.results.words import aligned, number, percent, whole
from sim.workload.doubts import doubts_on_times
from sim.workload.library import fetch, find_trace, known_as, raw_sha256
from sim.workload.readers import guess_format, reader
from sim.workload.source import TraceFile
from sim.workload.trace import LOOKED_AT


def describe(name: str, format_name: str, as_json: bool) -> None:
    """Show what is in a trace: on a screen, or as JSON."""
    source = TraceFile(find_trace(name))
    kind = guess_format(source) if format_name == "auto" else format_name
    stats = TraceStats().count(reader[kind](source))
    figures = {"file": str(source.path), "format": kind, "known_as": _known(source), **stats.figures()}
    doubts = [*_doubts(stats), *doubts_on_times(sorted(islice(stats.at_ps, LOOKED_AT)))]
    if as_json:
        sys.stdout.write(json_text({**figures, "warnings": [str(doubt) for doubt in doubts]}))
        return
    show(list(_screen(figures)), sys.stdout)
    for doubt in doubts:
        say(f"! {doubt}")


def fetch_trace(name: str) -> None:
    """Fetch a trace, and say where it lies."""
    path = fetch(name)
    show([[(str(path), "")]], sys.stdout)
    say(f"fetched, hash checked; use it as `workload.trace: {name}`")


def _known(source: TraceFile) -> dict[str, Any] | None:
    """The public trace that a file claims to be by its name, and whether its contents are those."""
    trace = None if source.path.is_dir() else known_as(source.path)
    if trace is None:
        return None
    return {"name": trace.name, "is_intact": raw_sha256(source.path) == trace.sha256, "source": trace.source}


def _doubts(stats: TraceStats) -> Iterator[Advice]:
    if stats.first_bad is not None:
        bad = stats.first_bad
        count = f"{whole(stats.bad_rows)} {'row' if stats.bad_rows == 1 else 'rows'} cannot be used"
        yield Advice(f"{count}, first line {bad.line}: {bad.problem}", bad.hint or "mend the file")
    if stats.worst_lateness_ps:
        late = f"{stats.worst_lateness_ps / 10**12:.6g} s"
        yield Advice(f"rows are out of order, by up to {late}", f"set workload.sort_window to {late} or more")


def _screen(figures: dict[str, Any]) -> Iterator[Line]:
    known = figures["known_as"]
    yield [(figures["file"], "bold"), (f"   read as {figures['format']}", "dim")]
    if known is not None:
        mark = ("✓", "bold green") if known["is_intact"] else ("✗", "bold red")
        state = "is" if known["is_intact"] else "is not, by its hash,"
        yield [mark, (f" {state} {known['name']}: {known['source']}", "")]
    rate = f"{number(figures['requests_per_s'])} requests/s"
    yield [(f"  {whole(figures['requests'])} requests in {number(figures['span_s'])} s, {rate}", "")]
    if figures["blocks"]:
        yield [
            (f"  {whole(figures['blocks'])} blocks, {percent(figures['reused_fraction'])} seen before", "")
        ]
    else:
        yield [("  no block ids: nothing can be reused", "")]
    if figures["extra"]:
        yield [(f"  more columns, not used: {', '.join(figures['extra'])}", "dim")]
    yield []
    rows = [["", *STATISTICS], *(_tokens(figures, key) for key in ("input_tokens", "output_tokens"))]
    yield from ([(f"  {line.rstrip()}", "")] for line in aligned(rows, left=1))


def _tokens(figures: dict[str, Any], key: str) -> list[str]:
    return [key.replace("_", " "), *(number(figures[key][name]) for name in STATISTICS)]
