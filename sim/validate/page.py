"""The page of all comparisons, in Markdown: summaries first, then groups, then what could not be compared.

Single rows are not on it: `sim validate --json` has them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from sim.validate.comparison import Comparison, Comparisons, Errors

ABOUT = {
    "measured": "Kernels, copies, whole steps and served requests of H200, measured by this project.",
    "silicon": "Runs of one replica at a fixed concurrency, from aiconfigurator-core 0.12.0.",
    "published": "What vendors and projects published, each with its source.",
    "theory": "Closed forms; what is called measured is the formula.",
}
HEAD = """# Validation of times

Written by `sim validate --write`; do not edit. Errors are predicted / measured − 1. *Median* and *worst* are
of absolute errors, *leans* is the median with its sign: above 0 the simulator is too slow (times) or too fast
(rates). Rows that a constant was fitted to are *fit*, and apart; the others were not looked at by any fit.
How the KV pool is validated: [validation.md](validation.md). The models: [models.md](models.md).
"""


def page(found: Sequence[Comparisons], notes: str = "") -> str:
    """The whole page."""
    parts = [HEAD.rstrip(), *(notes and [notes]), *_overview(found)]
    for each in found:
        parts += _section(each)
    return "\n".join(parts) + "\n"


def _overview(found: Sequence[Comparisons]) -> Iterator[str]:
    yield "\n## In short\n"
    yield "| set | metric | rows | | median | worst | leans |"
    yield "|---|---|--:|---|--:|--:|--:|"
    for each in found:
        for metric in each.metrics:
            rows = [row for row in each.rows if row.metric == metric]
            yield from _lines((each.name, metric), rows)


def _section(each: Comparisons) -> Iterator[str]:
    yield f"\n## {each.name}\n"
    yield ABOUT[each.name] + "\n"
    yield "| about | metric | rows | | median | worst | leans |"
    yield "|---|---|--:|---|--:|--:|--:|"
    keys = dict.fromkeys((row.group, row.metric) for row in each.rows)
    for group, metric in keys:
        yield from _lines(
            (group, metric), [row for row in each.rows if (row.group, row.metric) == (group, metric)]
        )
    if each.not_comparable:
        yield f"\nNot comparable: {len(each.not_comparable)}\n"
        yield "| rows | why |"
        yield "|--:|---|"
        for reason, count in Counter(left.reason for left in each.not_comparable).most_common():
            yield f"| {count} | {reason} |"


def _lines(names: tuple[str, str], rows: Iterable[Comparison]) -> Iterator[str]:
    rows = list(rows)
    for is_fitted in (False, True):
        errors = Errors.of(row for row in rows if row.fitted == is_fitted)
        if errors is not None:
            sizes = (
                percent(errors.median_abs),
                percent(errors.worst_abs),
                percent(errors.median_signed, True),
            )
            cells = (*names, f"{errors.count:,}", "fit" if is_fitted else "", *sizes)
            yield f"| {' | '.join(cells)} |"


def percent(fraction: float, has_sign: bool = False) -> str:
    """A fraction in percent: one digit below ten, none above."""
    value = 100 * fraction
    digits = 1 if abs(value) < 9.95 else 0
    if round(value, digits) == 0:
        value, has_sign = 0.0, False
    return f"{value:{'+' if has_sign else ''}.{digits}f} %".replace("-", "−")
