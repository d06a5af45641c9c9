"""A comparison in words: cells of its table, and a sentence for each column about what it does to users."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sim.results.comparison import BETTER, OTHER, UNCLEAR, WORSE, Cell, Comparison
from sim.results.intervals import Interval
from sim.results.measures import PHASE_WORDS, Kind, Measure
from sim.results.words import NOTHING, count_short, link_kind, number, percent, seconds

SIGNS: dict[str, str] = {BETTER: "✓", WORSE: "✗", OTHER: "≠", UNCLEAR: "~"}
GOODPUT = "goodput_per_s"
TOLD: tuple[str, ...] = (GOODPUT, "ttft_p90_s", "tpot_p90_s", "e2e_p99_s", "output_tokens_per_s_per_gpu")
"""What a sentence may be about, the first that clearly differs."""


def value(kind: Kind, mean: float | None) -> str:
    """A mean with its unit."""
    if mean is None:
        return NOTHING
    if kind == "time":
        return seconds(mean)
    if kind == "share":
        return percent(round(mean, 3))
    return count_short(mean) if kind == "count" else number(mean)


def difference(measure: Measure, cell: Cell) -> str:
    """The difference to the baseline: `+11 % ± 2`, or points for shares; nothing in the baseline itself."""
    if cell.difference is None:
        return ""
    if measure.kind == "share":
        return f"{_signed(cell.difference, 100)} pt{_half(cell.difference, 100)}"
    if cell.relative is None:
        return ""
    return f"{_signed(cell.relative, 100)} %{_half(cell.relative, 100)}"


def sign(cell: Cell) -> str:
    """Better, worse, other, or not clear; a blank where nothing is known of the uncertainty."""
    return SIGNS.get(cell.verdict or "", "")


def sentence(comparison: Comparison, column: str) -> str:
    """What a column does to users, and what in the life of a request changed most."""
    for name in TOLD:
        cell = comparison.cell(column, name) if _is_there(comparison, name) else None
        if cell is not None and cell.relative is not None and cell.verdict in {BETTER, WORSE}:
            return f"{column} {_does(comparison, name, cell.relative.mean)}{_because(comparison, column)}."
    if comparison.seeds < 2:
        return f"{column}: one seed tells nothing about chance; use --seeds 5."
    if comparison.is_chance_free:
        return f"{column}: every seed gives the same, so nothing can be said about chance."
    return f"{column}: no clear difference for users."


def _is_there(comparison: Comparison, name: str) -> bool:
    return any(one.measure.column == name for one in comparison.measures)


def _does(comparison: Comparison, name: str, change: float) -> str:
    """`serves 11 % more requests within the SLO`; `has a TTFT p90 that is 4 % shorter`."""
    size = f"{_digits(abs(100 * change))} %"
    if name == GOODPUT:
        return f"serves {size} {'more' if change > 0 else 'fewer'} requests within the SLO"
    measure = next(one.measure for one in comparison.measures if one.measure.column == name)
    if measure.kind == "time":
        return f"has a {measure.title} that is {size} {'longer' if change > 0 else 'shorter'}"
    return f"gives {size} {'more' if change > 0 else 'fewer'} output tokens on each GPU"


def _because(comparison: Comparison, column: str) -> str:
    cause = comparison.causes[comparison.columns.index(column)]
    if cause is None:
        return ""
    phase, change = cause
    how = f"{seconds(abs(change.mean))} {'more' if change.mean > 0 else 'less'}"
    return f"; on average {PHASE_WORDS[phase]} {how}"


def links(names: Sequence[str | None]) -> list[str]:
    """Links, or kinds of them, as they are called."""
    return [NOTHING if name is None else link_kind(name) for name in names]


def _signed(change: Interval, factor: float) -> str:
    size = _digits(abs(factor * change.mean))
    return f"{'−' if change.mean < 0 and float(size) else '+' if float(size) else ''}{size}"


def _half(change: Interval, factor: float) -> str:
    return "" if math.isnan(change.half) else f" ± {_digits(factor * change.half)}"


def _digits(size: float) -> str:
    """Two digits at least, none after the point from ten on."""
    return (
        f"{size:.0f}" if size >= 9.95 else f"{size:.1f}" if size >= 0.095 else f"{size:.2f}" if size else "0"
    )
