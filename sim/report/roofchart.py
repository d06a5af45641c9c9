"""The roofline chart of a GPU with the operators of a model on it, and the same as a table.

What is drawn is in `figures`: the roofs as printed (thin) and as kernels reach them (thick), and each
operator at its FLOP per byte and at the rate that it reaches with its fixed time, for which small ones hang
below.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.report.style import DPI, FAINT, INK, PALETTE, panels
from sim.report.text import Line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Figures = Mapping[str, Any]
SIZE_INCHES = (9.5, 6.2)
MARKERS = ("o", "s", "^", "D")
TERA = 1e12


def save_roofline(figures: Figures, path: Path) -> None:
    """Draw it into a picture file."""
    figure, (ax,) = panels(1, 1, SIZE_INCHES)
    low, high = _span(figures)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(low, high)
    _roofs(ax, figures, low, high)
    _works(ax, figures)
    ax.set_ylim(bottom=min(work["flops_per_s"] for work in figures["works"]) / TERA / 2.5)
    ax.set_xlabel("FLOP for each byte of memory that is moved")
    ax.set_ylabel("TFLOP per second")
    figure.suptitle(
        figures["title"], x=0.075, y=0.975, ha="left", fontsize=12.5, fontweight="bold", color=INK
    )
    figure.text(0.075, 0.915, figures["subtitle"], color=FAINT, fontsize=9)
    figure.text(0.075, 0.015, figures["caption"], color=FAINT, fontsize=7.5)
    figure.subplots_adjust(left=0.075, right=0.855, top=0.885, bottom=0.125)
    figure.savefig(path, dpi=DPI, metadata={"Software": None} if path.suffix == ".png" else None)


def _span(figures: Figures) -> tuple[float, float]:
    """The part of the axis that is of interest."""
    found = [work["intensity"] for work in figures["works"]]
    ridge = max(roof["nominal"] for roof in figures["roofs"]) / figures["memory"]["reached"]
    return min(found) / 2, max(*found, ridge) * 4


def _roofs(ax: Axes, figures: Figures, low: float, high: float) -> None:
    """Memory as a slope up to the highest roof, and a roof for each precision."""
    memory = figures["memory"]
    for key, width, alpha in (("nominal", 0.9, 0.55), ("reached", 2.2, 1.0)):
        top = max(roof[key] for roof in figures["roofs"])
        ridge = top / memory[key]
        ends = [memory[key] * low / TERA, top / TERA]
        ax.plot([low, ridge], ends, color=INK, linewidth=width, alpha=alpha, zorder=2)
        for roof in figures["roofs"]:
            start = roof[key] / memory[key]
            levels = [roof[key] / TERA] * 2
            ax.plot([start, high], levels, color=INK, linewidth=width, alpha=alpha, zorder=2)
    for roof in figures["roofs"]:
        told = f"{roof['name'].upper()} {roof['reached'] / TERA:,.0f} of {roof['nominal'] / TERA:,.0f}"
        _label(ax, told, (high, roof["reached"] / TERA), (5, 0), "left")
    told = f"memory\n{memory['reached'] / TERA:.2f} of {memory['nominal'] / TERA:.2f} TB/s"
    middle = (low * top / memory["nominal"]) ** 0.5
    _label(ax, told, (middle, memory["nominal"] * middle / TERA), (-6, 6), "right")


def _label(ax: Axes, told: str, at: tuple[float, float], shift: tuple[int, int], side: str) -> None:
    ax.annotate(
        told, at, xytext=shift, textcoords="offset points", ha=side, va="center", fontsize=8.5, color=INK
    )


def _works(ax: Axes, figures: Figures) -> None:
    """The operators, a colour and a mark for each phase, with numbers that the key explains."""
    phases = list(dict.fromkeys(work["phase"] for work in figures["works"]))
    for place, phase in enumerate(phases):
        works = [work for work in figures["works"] if work["phase"] == phase]
        colour = PALETTE[place % len(PALETTE)]
        xs = [work["intensity"] for work in works]
        ys = [work["flops_per_s"] / TERA for work in works]
        marker = MARKERS[place % len(MARKERS)]
        ax.scatter(xs, ys, s=52, marker=marker, color=colour, edgecolor="white", zorder=4, label=phase)
        for work, x, y in zip(works, xs, ys, strict=True):
            ax.annotate(
                str(work["number"]),
                (x, y),
                xytext=(5, -9),
                textcoords="offset points",
                fontsize=8,
                color=colour,
                zorder=5,
            )
    names = {work["number"]: work["name"] for work in figures["works"]}
    key = "\n".join(f"{number}  {name}" for number, name in sorted(names.items()))
    ax.text(
        0.985,
        0.03,
        key,
        transform=ax.transAxes,
        fontsize=8,
        color=INK,
        va="bottom",
        ha="right",
        multialignment="left",
        linespacing=1.45,
        bbox={"facecolor": "white", "edgecolor": "none"},
    )
    ax.legend(loc="upper left", frameon=False, fontsize=8.5, handletextpad=0.2)


def roofline_screen(figures: Figures) -> list[Line]:
    """The table behind the picture."""
    heading = f"    {'':<36} {'FLOP/byte':>10} {'TFLOP/s':>9} {'TB/s':>7} {'us':>9}"
    lines: list[Line] = [[(figures["title"], "bold")], [], [(heading, "dim")]]
    for phase in dict.fromkeys(work["phase"] for work in figures["works"]):
        lines.append([(f"  {phase}", "")])
        lines += [[(_told(work), "")] for work in figures["works"] if work["phase"] == phase]
    return lines


def _told(work: Figures) -> str:
    rate = work["flops_per_s"]
    label = f"{work['number']:>2}  {work['name']}"
    return (
        f"    {label:<36} {work['intensity']:>10,.1f} {rate / TERA:>9,.1f} "
        f"{rate / work['intensity'] / TERA:>7.2f} {1e6 * work['time_s']:>9,.1f}"
    )
