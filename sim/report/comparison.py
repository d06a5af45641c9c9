"""The screen of a comparison: what differs, the table of measures, and a sentence for each column.

The same cells make a Markdown table. Differences are to the baseline, with the half-width of their interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sim.report.text import Line
from sim.results import comparedwords as words
from sim.results.comparison import BETTER, WORSE, Comparison
from sim.results.differences import Differences
from sim.results.words import counted, mark

STYLES: dict[str | None, str] = {BETTER: "green", WORSE: "red"}
MOST_KEYS = 20
Row = list[tuple[str, str]]


def comparison_lines(comparison: Comparison, differences: Differences) -> list[Line]:
    """The whole screen."""
    return [
        *([(text, "dim")] for text in heading(comparison, differences)),
        [],
        *_aligned(difference_rows(differences), 2),
        [],
        *_aligned(measure_rows(comparison), 2),
        [],
        *[
            [("In words  " if i == 0 else "          ", "bold"), (text, "")]
            for i, text in enumerate(sentences(comparison))
        ],
        *[[("✗ ", "bold red"), (text, "red")] for text in failures(comparison)],
    ]


def heading(comparison: Comparison, differences: Differences) -> Iterator[str]:
    """How columns relate to each other, and what the signs mean."""
    if differences.of_requests:
        keys = ", ".join(differences.of_requests)
        yield f"Requests are not the same in every column, for they differ in {keys}."
    else:
        yield "Same requests in every column."
    if comparison.seeds < 2:
        yield "One seed, so nothing is known of chance: --seeds 5 gives intervals."
    elif comparison.is_chance_free:
        yield "Every seed gives the same run, as with a trace, so there are no intervals."
    else:
        paired = counted(comparison.seeds, "paired seed")
        yield f"± is a 95 % interval over {paired}; ✓ better, ✗ worse, ≠ other, ~ no clear difference."


def difference_rows(differences: Differences) -> list[Row]:
    """The keys in which the scenarios differ."""
    rows: list[Row] = [[("differs in", "dim"), ("", ""), *[(name, "dim") for name in differences.columns]]]
    for key, values in list(differences.values.items())[:MOST_KEYS]:
        rows.append([(key, ""), ("", ""), *[(value, "") for value in values]])
    more = len(differences.values) - MOST_KEYS
    if more > 0:
        rows.append([(f"and {counted(more, 'other key')}", "dim"), *[("", "") for _ in rows[0][1:]]])
    return rows


def measure_rows(comparison: Comparison) -> list[Row]:
    """A row for each measure: its mean in each column, its difference, and a sign."""
    heads = [(name, "bold") for name in comparison.columns]
    rows: list[Row] = [[("", ""), ("", ""), *_spread(heads, comparison)]]
    met = [(f"{mark(is_met)} SLO", "") for is_met in comparison.slo_met]
    rows.append([("", ""), ("", ""), *_spread(met, comparison)])
    for one in comparison.measures:
        cells: Row = []
        for name, cell in zip(comparison.columns, one.cells, strict=True):
            cells.append((words.value(one.measure.kind, cell.mean), ""))
            if name != comparison.baseline:
                cells.append((words.difference(one.measure, cell), STYLES.get(cell.verdict, "")))
                cells.append((words.sign(cell), STYLES.get(cell.verdict, "dim")))
        unit = one.measure.unit if one.measure.kind != "time" else ""
        rows.append([(one.measure.title, ""), (unit, "dim"), *cells])
    for title, names in (("  which", comparison.links), ("handoffs wait for", comparison.waited_for)):
        if any(names):
            cells = [(name, "dim") for name in words.links(names)]
            rows.append([(title, ""), ("", ""), *_spread(cells, comparison)])
    return rows


def sentences(comparison: Comparison) -> list[str]:
    """One sentence for each column but the baseline."""
    others = [name for name in comparison.columns if name != comparison.baseline]
    return [words.sentence(comparison, name) for name in others]


def failures(comparison: Comparison) -> list[str]:
    """The columns that failed, with their reasons."""
    return [f"{name} failed: {reason}" for name, reason in comparison.failed.items()]


def markdown(comparison: Comparison, differences: Differences) -> str:
    """The same as Markdown, to be put into an issue or a report."""
    parts = [
        " ".join(heading(comparison, differences)),
        _table(difference_rows(differences)),
        _table(measure_rows(comparison)),
        "\n".join(f"- {text}" for text in [*sentences(comparison), *failures(comparison)]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _spread(cells: Sequence[tuple[str, str]], comparison: Comparison) -> Row:
    """A cell for each column, with blanks where differences and signs stand."""
    found: Row = []
    for name, cell in zip(comparison.columns, cells, strict=True):
        found += [cell] if name == comparison.baseline else [cell, ("", ""), ("", "")]
    return found


def _aligned(rows: Sequence[Row], indent: int) -> Iterator[Line]:
    """Rows as lines whose columns line up: words to the left, figures to the right."""
    widths = [max(len(row[i][0]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        line: Line = [(" " * indent, "")]
        for i, ((text, style), width) in enumerate(zip(row, widths, strict=True)):
            line.append((text.ljust(width) if i < 2 else text.rjust(width), style))
            line.append(("  " if width else "", ""))
        yield line


def _table(rows: Sequence[Row]) -> str:
    kept = [i for i in range(len(rows[0])) if any(row[i][0] for row in rows)]
    lines = ["| " + " | ".join(row[i][0].strip() for i in kept) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "|".join("---" if i < 2 else "---:" for i in kept) + "|", *lines[1:]])
