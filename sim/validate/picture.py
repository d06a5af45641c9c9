"""What a picture of a set shows: its rows, what each is about in few words, and the errors in a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sim.validate.comparison import Comparisons, Errors
from sim.validate.page import percent

KINDS = 6
"""Colours that a panel has; the smaller kinds beyond share the last one."""
OTHERS = "others"


def figures_of(each: Comparisons) -> dict[str, Any]:
    """All that is drawn of a set."""
    told = []
    for metric in each.metrics:
        for is_fitted, word in ((False, ""), (True, " where fitted")):
            errors = Errors.of(row for row in each.rows if row.metric == metric and row.fitted == is_fitted)
            if errors is not None:
                told.append(f"{metric}{word} {percent(errors.median_abs)}")
    return {
        "title": f"Does the simulator say what was measured? Set {each.name}",
        "subtitle": f"Median absolute errors: {', '.join(told)}. Grey: within 15 %. Hollow: fitted to.",
        "rows": list(_rows(each)),
    }


def _rows(each: Comparisons) -> Iterator[dict[str, Any]]:
    """The rows, of which each metric has its commonest kinds and the others together."""
    counts: dict[str, dict[str, int]] = {}
    for row in each.rows:
        of_metric = counts.setdefault(row.metric, {})
        kind = kind_of(each.name, row.group)
        of_metric[kind] = of_metric.get(kind, 0) + 1
    for row in each.rows:
        of_metric, kind = counts[row.metric], kind_of(each.name, row.group)
        common = sorted(of_metric, key=lambda name: -of_metric[name])
        shown = common if len(common) <= KINDS else common[: KINDS - 1]
        yield {
            "id": row.id,
            "metric": row.metric,
            "unit": row.unit,
            "predicted": row.predicted,
            "measured": row.measured,
            "fitted": row.fitted,
            "kind": kind if kind in shown else OTHERS,
        }


def kind_of(name: str, group: str) -> str:
    """What a row is about, in few words: system and engine of silicon rows, else the group's first words."""
    if name == "silicon":
        system, *_, engine = group.split(" ")
        return f"{system} {engine}"
    return group.partition(": ")[2].partition(",")[0] or group.partition(",")[0]
