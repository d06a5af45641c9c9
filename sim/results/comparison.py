"""Runs beside each other: for each measure its mean in each column, and how it differs from the baseline.

Model: every column is played with the same seeds, hence with the same requests where the workload is the
same; a difference is taken seed by seed, and its 95 % interval comes from these (see sim.results.intervals).
It is clear where zero lies outside. Differences are shares of the baseline's mean, those of shares are
percentage points. A measure that a replication lacks is missing for its column.
Ignores: that among twenty measures one may look clear by chance.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from sim.results.intervals import Interval, interval, paired
from sim.results.measures import MEASURES, PHASE_WORDS, Measure

COLUMN = "column"
ALWAYS = ("goodput_per_s", "ttft_p90_s", "tpot_p90_s", "e2e_p99_s")
"""Measures that are shown even where they are the same in all columns."""
LEAST_DIFFERENCE = 1e-4
"""A difference below this part of the baseline's mean is none, however sure it is."""
LEAST_CAUSE = 0.01
"""A phase is no cause that changed by less than this part of the mean end to end."""
BETTER, WORSE, OTHER, UNCLEAR, UNKNOWN = "better", "worse", "other", "unclear", "unknown"


@dataclass(frozen=True, slots=True)
class Cell:
    """A measure in one column: its mean, and its difference to the baseline in its own unit and relative.

    `verdict` is one of the words above; None in the baseline's own column. `relative` is None for shares,
    whose difference is told in points, and where the baseline's mean is zero.
    """

    mean: float | None
    difference: Interval | None = None
    relative: Interval | None = None
    verdict: str | None = None


@dataclass(frozen=True, slots=True)
class Compared:
    """One measure in all columns, in their order."""

    measure: Measure
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Comparison:
    """Columns with their rows, one a seed, and what came of comparing them.

    Of each column `links` has the busiest link, `waited_for` the kind of link that the slowest handoffs
    waited for, `causes` the phase that changed most.
    """

    columns: tuple[str, ...]
    baseline: str
    seeds: int
    measures: tuple[Compared, ...]
    links: tuple[str | None, ...]
    waited_for: tuple[str | None, ...]
    slo_met: tuple[bool | None, ...]
    causes: tuple[tuple[str, Interval] | None, ...]
    is_chance_free: bool
    failed: Mapping[str, str]

    def cell(self, column: str, name: str) -> Cell:
        """A measure, by the column of the rows, in a column of the comparison."""
        found = next(one for one in self.measures if one.measure.column == name)
        return found.cells[self.columns.index(column)]


def compare_rows(rows: pd.DataFrame, baseline: str) -> Comparison:
    """Compare the rows of trials; `column` says which column each belongs to."""
    failures = rows[rows["status"] != "ok"].groupby(COLUMN, sort=False)["reason"].first()
    failed = {str(name): str(reason) for name, reason in failures.items()}
    by_column = {
        str(name): of_column.sort_values("seed")
        for name, of_column in rows.groupby(COLUMN, sort=False)
        if name not in failed
    }
    base = by_column[baseline]
    is_chance_free = len(base) > 1 and all(one["digest"].nunique() == 1 for one in by_column.values())
    tables = list(by_column.values())
    return Comparison(
        columns=tuple(by_column),
        baseline=baseline,
        seeds=len(base),
        measures=tuple(_measured(tables, base, is_chance_free)),
        links=tuple(_most_often(one, "busiest_link") for one in tables),
        waited_for=tuple(_most_often(one, "handoff_waited_for") for one in tables),
        slo_met=tuple(_all_met(one["slo_met"].tolist()) for one in tables),
        causes=tuple(None if one is base else _cause(base, one) for one in tables),
        is_chance_free=is_chance_free,
        failed=failed,
    )


def _measured(tables: Sequence[pd.DataFrame], base: pd.DataFrame, is_chance_free: bool) -> list[Compared]:
    """The measures that some column has, as far as they are not the same in all."""
    found = []
    for measure in MEASURES:
        before = _values(base, measure.column)
        cells = [_cell(measure, before, one, one is base, is_chance_free) for one in tables]
        means = {cell.mean for cell in cells}
        if means != {None} and (len(means) > 1 or measure.column in ALWAYS):
            found.append(Compared(measure, tuple(cells)))
    return found


def _cell(
    measure: Measure, before: list[float] | None, table: pd.DataFrame, is_base: bool, is_chance_free: bool
) -> Cell:
    after = _values(table, measure.column)
    if after is None:
        return Cell(None)
    mean = interval(after).mean
    if is_base or before is None:
        return Cell(mean)
    difference = paired(before, after)
    if is_chance_free:
        difference = Interval(difference.mean, math.nan)
    scale = interval(before).mean
    relative = None
    if measure.kind != "share" and scale:
        relative = Interval(difference.mean / scale, difference.half / abs(scale))
    return Cell(mean, difference, relative, _verdict(measure, difference, scale))


def _verdict(measure: Measure, difference: Interval, scale: float) -> str:
    if math.isnan(difference.half):
        return UNKNOWN
    if not difference.is_apart_from_zero or abs(difference.mean) < LEAST_DIFFERENCE * abs(scale):
        return UNCLEAR
    if measure.better is None:
        return OTHER
    return BETTER if (difference.mean > 0) == (measure.better == "higher") else WORSE


def _cause(base: pd.DataFrame, table: pd.DataFrame) -> tuple[str, Interval] | None:
    """The phase whose mean clearly changed most, if that is more than a trifle."""
    changes = []
    whole = interval(_values(base, "e2e_mean_s") or []).mean
    for phase in PHASE_WORDS:
        before, after = (_values(one, f"phase_{phase}_s") for one in (base, table))
        if before is not None and after is not None:
            change = paired(before, after)
            if change.is_apart_from_zero and abs(change.mean) > LEAST_CAUSE * whole:
                changes.append((phase, change))
    return max(changes, key=lambda pair: abs(pair[1].mean), default=None)


def _values(table: pd.DataFrame, name: str) -> list[float] | None:
    """A column as numbers, one a seed; None where one is missing."""
    if name not in table:
        return None
    values = [math.nan if value is None else float(value) for value in table[name].tolist()]
    return None if any(math.isnan(value) for value in values) else values


def _most_often(table: pd.DataFrame, column: str) -> str | None:
    if column not in table:
        return None
    counts = table[column].dropna().value_counts()
    return str(counts.index[0]) if len(counts) else None


def _all_met(answers: Sequence[Any]) -> bool | None:
    known = [bool(answer) for answer in answers if not pd.isna(answer)]
    return all(known) if known else None
