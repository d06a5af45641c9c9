"""`sim validate`: predictions beside measurements, on the screen, as JSON, or as a page of the docs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sim.base.errors import UnknownNameError, UnsupportedError
from sim.cli.trouble import GOOD, say
from sim.validate.comparison import Comparison, Comparisons, Errors
from sim.validate.page import page, percent
from sim.validate.sets import ORDER, compared, sets

WORST_SHOWN = 3
PAGE = Path("docs/validation-timing.md")


@dataclass(frozen=True, slots=True)
class Order:
    """What the user asked for."""

    name: str | None
    data: Path | None
    json: bool
    write: Path | None
    plot: Path | None = None


def validate(order: Order) -> int:
    """Compare, and show what came of it."""
    names = ORDER if order.name is None else (order.name,)
    for name in names:
        if name not in sets:
            raise UnknownNameError("set", name, ORDER)
    if order.data is not None and order.name is None:
        raise UnsupportedError("--data without --set-name", "sim validate --set-name silicon --data FILE")
    found = []
    for name in names:
        if not order.json:
            say(f"comparing {name} ...")
        found.append(compared(name, order.data))
    if order.json:
        shown: Any = [as_json(each) for each in found]
        print(json.dumps(shown[0] if order.name is not None else shown, indent=1))
    else:
        for each in found:
            show(each)
    _keep(order, found)
    return GOOD


def _keep(order: Order, found: Sequence[Comparisons]) -> None:
    """Write the page and the pictures that were asked for."""
    if order.write is not None:
        order.write.write_text(page(found), encoding="utf-8")
        say(f"wrote {order.write}")
    if order.plot is not None:
        from sim.cli.agreement import save_agreements  # noqa: PLC0415 - slow to import

        for path in save_agreements(found, order.plot):
            say(f"drawn: {path}")


def as_json(each: Comparisons) -> dict[str, Any]:
    """A set as the command writes it for machines."""
    errors = {metric: each.errors(metric) for metric in each.metrics}
    return {
        "set": each.name,
        "median_abs_error": {metric: found.median_abs for metric, found in errors.items()},
        "worst_abs_error": {metric: found.worst_abs for metric, found in errors.items()},
        "rows": [
            {
                "id": row.id,
                "metric": row.metric,
                "predicted": row.predicted,
                "measured": row.measured,
                "error": row.error,
                "fitted": row.fitted,
            }
            for row in each.rows
        ],
        "not_comparable": [{"id": left.id, "reason": left.reason} for left in each.not_comparable],
    }


def show(each: Comparisons) -> None:
    """A set on the screen: errors by metric and group, the worst rows, and what could not be compared."""
    print(f"{each.name}: {len(each.rows):,} comparisons, {len(each.not_comparable):,} not comparable")
    print(f"  {'':<58} {'rows':>5}  {'median':>7} {'worst':>7} {'leans':>7}")
    for metric in each.metrics:
        rows = [row for row in each.rows if row.metric == metric]
        _line(f"{metric}, all", rows)
        groups = dict.fromkeys(row.group for row in rows)
        for group in groups if len(groups) > 1 else ():
            _line(f"  {group}", [row for row in rows if row.group == group])
        for row in sorted(rows, key=lambda row: -abs(row.error))[:WORST_SHOWN]:
            print(f"    worst: {row.id}: {row.predicted:.4g} for {row.measured:.4g} {row.unit}")
    print()


def _line(label: str, rows: list[Comparison]) -> None:
    for is_fitted in (False, True):
        errors = Errors.of(row for row in rows if row.fitted == is_fitted)
        if errors is not None:
            told = f"{label} (fit)" if is_fitted else label
            print(
                f"  {told:<58} {errors.count:>5}  {percent(errors.median_abs):>7} "
                f"{percent(errors.worst_abs):>7} {percent(errors.median_signed, True):>7}"
            )
