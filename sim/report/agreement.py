"""Predicted against measured, a panel for each metric of a set: points on the diagonal agree.

What is drawn is in `figures`: the rows of a set as its JSON has them, with what each is about. Rows that a
constant was fitted to are hollow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.report.style import DPI, FAINT, GRID, INK, PALETTE, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Figures = Mapping[str, Any]
PANEL_INCHES = (4.9, 4.9)
HEAD_INCHES = 0.6
NARROW_SPAN = 200
BAND = 0.15
"""The grey band: predictions within so much of what was measured."""


def save_agreement(figures: Figures, path: Path) -> None:
    """Draw it into a PNG file."""
    agreement(figures).savefig(path, format="png", dpi=DPI, metadata={"Software": None})


def agreement(figures: Figures) -> Figure:
    """Draw it."""
    metrics = list(dict.fromkeys(row["metric"] for row in figures["rows"]))
    columns = min(3, len(metrics))
    rows = -(-len(metrics) // columns)
    width, height = PANEL_INCHES[0] * columns, PANEL_INCHES[1] * rows + HEAD_INCHES
    figure, axes = panels(rows, columns, (width, height))
    for ax, metric in zip(axes, metrics, strict=False):
        _panel(ax, metric, [row for row in figures["rows"] if row["metric"] == metric])
    for ax in axes[len(metrics) :]:
        ax.set_visible(False)
    left = 0.95 / width
    figure.text(left, 1 - 0.3 / height, figures["title"], fontsize=12.5, fontweight="bold", color=INK)
    figure.text(left, 1 - 0.55 / height, figures["subtitle"], color=FAINT, fontsize=8.5)
    figure.subplots_adjust(
        left=left,
        right=1 - 0.15 / width,
        top=1 - (HEAD_INCHES + 0.35) / height,
        bottom=0.55 / height,
        wspace=0.28,
        hspace=0.3,
    )
    return figure


def _panel(ax: Axes, metric: str, rows: Sequence[Figures]) -> None:
    values = [row[key] for row in rows for key in ("measured", "predicted")]
    low, high = min(values) / 1.6, max(values) * 1.6
    _axes(ax, low, high)
    ends = [low, high]
    lower, upper = ([end * (1 + part) for end in ends] for part in (-BAND, BAND))
    ax.fill_between(ends, lower, upper, color=GRID, zorder=1, linewidth=0)
    ax.plot(ends, ends, color=FAINT, linewidth=0.9, zorder=2)
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    for place, kind in enumerate(kinds):
        _points(ax, [row for row in rows if row["kind"] == kind], PALETTE[place % len(PALETTE)], kind)
    units = list(dict.fromkeys(row["unit"] for row in rows))
    told = units[0] if len(units) == 1 else "each in its unit"
    ax.set_xlabel(f"measured, {told}", color=FAINT, fontsize=9)
    ax.set_ylabel(f"predicted, {told}", color=FAINT, fontsize=9, labelpad=1)
    heading = metric.upper() if metric in ("ttft", "tpot") else metric
    ax.set_title(
        f"{heading}, {len(rows):,} row{'s' * (len(rows) > 1)}",
        loc="left",
        fontsize=10.5,
        fontweight="bold",
        color=INK,
    )
    if len(kinds) > 1:
        ax.legend(loc="upper left", frameon=False, fontsize=7.5, handletextpad=0.1, borderaxespad=0.2)


def _axes(ax: Axes, low: float, high: float) -> None:
    """Both axes alike, with ticks at powers of ten, or between them where there are few."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: PLC0415 - slow

    subdivisions = (1.0,) if high / low > NARROW_SPAN else (1.0, 2.0, 5.0)
    ax.set_box_aspect(1)
    for scale, limit, axis in (
        (ax.set_xscale, ax.set_xlim, ax.xaxis),
        (ax.set_yscale, ax.set_ylim, ax.yaxis),
    ):
        scale("log")
        limit(low, high)
        axis.set_major_locator(LogLocator(subs=subdivisions))
        axis.set_major_formatter(
            FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
        )
        axis.set_minor_formatter(NullFormatter())
    ax.tick_params(labelsize=8, labelcolor=FAINT)


def _points(ax: Axes, rows: Sequence[Figures], colour: str, kind: str) -> None:
    """One kind of rows; those that were fitted to are hollow."""
    for is_fitted in (True, False):
        chosen = [row for row in rows if row["fitted"] == is_fitted]
        if not chosen:
            continue
        face = "none" if is_fitted else colour
        ax.scatter(
            [row["measured"] for row in chosen],
            [row["predicted"] for row in chosen],
            s=15,
            linewidths=0.9,
            edgecolors=colour,
            facecolors=face,
            alpha=0.75,
            zorder=3,
            label=f"{kind} (fit)" if is_fitted else kind,
        )
