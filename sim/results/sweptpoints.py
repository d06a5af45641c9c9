"""The points of a sweep: for each the means over its seeds, with their 95 % intervals, and what failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from sim.results.intervals import Interval, interval

SHOWN: tuple[str, ...] = ("goodput_per_s", "ttft_p90_s", "tpot_p90_s", "e2e_p99_s", "hit_fraction")


@dataclass(frozen=True)
class SweptPoint:
    """One point: its values, how many seeds gave a row, how many of these met the SLO, and the figures."""

    labels: Mapping[str, str]
    seeds: int
    met: int | None
    figures: Mapping[str, Interval]
    reasons: tuple[str, ...]


def points_of(table: pd.DataFrame, axes: Sequence[str]) -> list[SweptPoint]:
    """The points in the order of the table."""
    if not axes:
        return [_point({}, table)]
    groups = table.groupby(list(axes), sort=False, dropna=False)
    return [
        _point({name: str(value) for name, value in zip(axes, _tuple(values), strict=True)}, rows)
        for values, rows in groups
    ]


def _tuple(values: object) -> tuple[object, ...]:
    return values if isinstance(values, tuple) else (values,)


def _point(labels: Mapping[str, str], rows: pd.DataFrame) -> SweptPoint:
    good = rows[rows["status"] == "ok"]
    answers = [] if good.empty else [answer for answer in good["slo_met"].tolist() if not pd.isna(answer)]
    figures = {name: interval(good[name].dropna().astype(float).tolist()) for name in SHOWN if name in good}
    reasons = dict.fromkeys(str(reason) for reason in rows[rows["status"] != "ok"]["reason"])
    return SweptPoint(labels, len(good), sum(answers) if answers else None, figures, tuple(reasons))
