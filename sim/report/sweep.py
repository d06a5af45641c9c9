"""The screens of `sim sweep`: a line for each point, or the highest value that meets the SLO."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from sim.report.text import Line
from sim.results.comparedwords import value
from sim.results.intervals import Interval
from sim.results.measures import MEASURES
from sim.results.sweptpoints import SHOWN, SweptPoint
from sim.results.words import NOTHING, counted, number

KINDS = {measure.column: measure for measure in MEASURES}


def sweep_lines(points: Sequence[SweptPoint], axes: Sequence[str], saved: str | None) -> list[Line]:
    """A table of points, what failed, and where the whole table lies."""
    shown = [name for name in SHOWN if any(_is_known(point, name) for point in points)]
    heads = [*axes, "SLO", *[KINDS[name].title for name in shown]]
    units = [
        "",
        *["" for _ in axes],
        *[KINDS[name].unit if KINDS[name].kind == "rate" else "" for name in shown],
    ]
    rows = [heads, units] if any(units) else [heads]
    rows += [
        [*[point.labels[axis] for axis in axes], _met(point), *_figures(point, shown)] for point in points
    ]
    lines = aligned(rows)
    failed = [(point, reason) for point in points for reason in point.reasons]
    return [
        [(lines[0], "dim")],
        *[[(line, "")] for line in lines[1:]],
        *[[("✗ ", "bold red"), (f"{_named(point)}: {reason}", "red")] for point, reason in failed],
        *_saved(saved),
    ]


def highest_lines(
    what: str, answers: Iterable[tuple[str, str, Sequence[str]]], runs: int, saved: str | None
) -> list[Line]:
    """At each point the answer, and what each seed was seen to hold and to break at."""
    lines: list[Line] = [[(f"Highest {what}", "")]]
    for label, answer, details in answers:
        lines.append([(f"  {label}  " if label else "  ", ""), (answer, "bold")])
        lines += [[(f"    {detail}", "dim")] for detail in details]
    return [*lines, [(f"  by bisection, in {counted(runs, 'run')}", "dim")], *_saved(saved)]


def spread(found: Interval, unit: str = "") -> str:
    """A mean with its uncertainty: 7.91 ± 0.42 req/s."""
    half = "" if math.isnan(found.half) else f" ± {number(found.half)}"
    return f"{number(found.mean)}{half} {unit}".rstrip()


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines: the first column to the left, the others to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  "
        + "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _is_known(point: SweptPoint, name: str) -> bool:
    """Whether there is a figure to show; hits are shown where there are any."""
    found = point.figures.get(name)
    return found is not None and not math.isnan(found.mean) and (name != "hit_fraction" or found.mean > 0)


def _met(point: SweptPoint) -> str:
    if point.met is None:
        return "~" if point.seeds else "✗"
    if point.met in {0, point.seeds}:
        return "✓" if point.met else "✗"
    return f"{point.met} of {point.seeds}"


def _figures(point: SweptPoint, shown: Sequence[str]) -> list[str]:
    return [_figure(point, name) if _is_known(point, name) else NOTHING for name in shown]


def _figure(point: SweptPoint, name: str) -> str:
    found, kind = point.figures[name], KINDS[name].kind
    half = "" if math.isnan(found.half) else f" ± {value(kind, found.half)}"
    return value(kind, found.mean) + half


def _named(point: SweptPoint) -> str:
    return ", ".join(f"{key}={label}" for key, label in point.labels.items()) or "the scenario"


def _saved(saved: str | None) -> list[Line]:
    return [] if saved is None else [[], [("saved ", ""), (saved, "bold")]]
