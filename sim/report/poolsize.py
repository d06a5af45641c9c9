"""The picture of a pool's size: hit rate, TTFT, goodput and cost over gigabytes a node, with the knees.

Bands are 95 % intervals over seeds. What is drawn is the table of `pool_sizes`, nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sim.report.style import BROKEN, FAINT, INK, KEPT, PALETTE, panels
from sim.results.poolsize import COST, PoolSizes
from sim.results.words import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE_INCHES = (10.0, 7.2)
PANELS: tuple[tuple[str, str, str, float], ...] = (
    ("hit_fraction", "Hit rate", "% of prompt tokens", 100.0),
    ("ttft_p90_s", "TTFT p90", "s", 1.0),
    ("goodput_fraction", "Goodput", "% of requests within the SLO", 100.0),
    (COST, "Cost", "USD for 1 M good output tokens", 1.0),
)
"""The column of each panel, its title, its unit, and the factor to that unit."""


def draw_pool_sizes(sizes: PoolSizes, ttft_limit_s: float | None = None, note: str = "") -> Figure:
    """Four panels over the size of the pool; the limit of the SLO on TTFT is a line in its panel."""
    figure, axes = panels(2, 2, SIZE_INCHES)
    for ax, (name, title, unit, factor) in zip(axes, PANELS, strict=True):
        _curve(ax, sizes, name, factor)
        ax.set_title(title, loc="left", fontsize=11.5, fontweight="bold", color=INK)
        ax.set_ylabel(unit, color=FAINT, fontsize=9)
        ax.set_ylim(0, 1.08 * ax.get_ylim()[1])
        if name == "ttft_p90_s" and ttft_limit_s is not None:
            _limit(ax, ttft_limit_s)
        if name == COST:
            _mark(ax, sizes, name, factor, sizes.cheapest_gb, "cheapest within the SLO", KEPT)
        else:
            _mark(ax, sizes, name, factor, sizes.knees.get(name), "knee", PALETTE[1])
    for ax in axes[2:]:
        ax.set_xlabel("GB of host memory lent by each node", color=FAINT, fontsize=9)
    _captions(figure, note)
    return figure


def _curve(ax: Axes, sizes: PoolSizes, name: str, factor: float) -> None:
    table = sizes.table.dropna(subset=[name])
    x, y, half = table.index.to_numpy(), factor * table[name], factor * table[f"{name}_half"].fillna(0.0)
    ax.fill_between(x, y - half, y + half, color=PALETTE[0], alpha=0.15, linewidth=0)
    ax.plot(x, y, "o-", color=PALETTE[0], linewidth=2.2, markersize=4.5, zorder=3)


def _mark(  # noqa: PLR0913, PLR0917 - a mark is a place, a word and a colour
    ax: Axes, sizes: PoolSizes, name: str, factor: float, size_gb: float | None, word: str, colour: str
) -> None:
    """A dashed line at a size, and its label where the curve leaves room."""
    if size_gb is None:
        return
    ax.axvline(size_gb, color=colour, linewidth=1.2, linestyle=(0, (4, 3)), zorder=2)
    table, value = sizes.table[name].dropna(), factor * sizes.at(size_gb, name)
    is_high = value > 0.5 * factor * float(table.max())
    is_left = 2 * size_gb > float(sizes.table.index[-1])
    ax.annotate(
        f"{word}: {number(size_gb)} GB",
        (size_gb, 0.08 if is_high else 0.9),
        xycoords=("data", "axes fraction"),
        xytext=(-6 if is_left else 6, 0),
        textcoords="offset points",
        ha="right" if is_left else "left",
        color=colour,
        fontsize=9,
        zorder=5,
    )
    ax.plot([size_gb], [value], "o", color=colour, markersize=8, markeredgecolor="white", zorder=4)


def _limit(ax: Axes, limit_s: float) -> None:
    ax.axhline(limit_s, color=BROKEN, linewidth=1.1, linestyle=(0, (1, 2)), zorder=2)
    ax.annotate(
        f"SLO {number(limit_s)} s",
        (0.99, limit_s),
        xycoords=("axes fraction", "data"),
        xytext=(0, 4),
        textcoords="offset points",
        ha="right",
        color=BROKEN,
        fontsize=8.5,
    )


def _captions(figure: Figure, note: str) -> None:
    figure.subplots_adjust(left=0.075, right=0.975, top=0.87, bottom=0.115, hspace=0.34, wspace=0.2)
    title = "How much DRAM per node is worth buying?"
    figure.text(0.075, 0.965, title, fontsize=16, fontweight="bold", color=INK, va="top")
    figure.text(0.075, 0.02, note, fontsize=8, color=FAINT)
