"""The picture of docs/validation.md: hit rate over the memory that nodes lend, shared or not.

    python tools/draw_mooncake_fast25.py

It shows docs/data/mooncake-fast25.json, made by tools/mooncake_fast25.py, as docs/images/mooncake-fast25.png.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from sim.report.style import DPI, FAINT, INK, PALETTE, panels

ROOT = Path(__file__).parents[1]
DATA = ROOT / "docs" / "data" / "mooncake-fast25.json"
PICTURE = ROOT / "docs" / "images" / "mooncake-fast25.png"
TRACES = ("conversation", "synthetic")
PRINTED_TOKENS = 3_000_000

Rows = Mapping[str, Sequence[dict[str, Any]]]

PAPER_LEADS = {"conversation": 2.22, "synthetic": 2.36}
"""Hit rate of one pool over that of local caches at the printed size (Qin et al., FAST 2025, Fig. 10)."""
CURVES = (
    ("pooled", "conductor", "one pool", PALETTE[0], "o"),
    ("local", "conductor", "each its own,\nrouted by contents", PALETTE[1], "s"),
    ("local", "least_loaded", "each its own,\nrouted by load", PALETTE[2], "^"),
)
LOWER_POINTS = {("conversation", 1): 12, ("synthetic", 1): 20}
"""By how much labels are set below their curves, so as not to meet."""


def picture(rows: Rows) -> Figure:
    """Hit rate over what a node lends."""
    figure, axes = panels(1, 2, (10.0, 4.6))
    figure.subplots_adjust(left=0.065, right=0.86, top=0.74, bottom=0.2, wspace=0.55)
    for ax, trace in zip(axes, TRACES, strict=True):
        panel(ax, rows, trace)
    title = "What does it bring that nodes share their caches?"
    figure.text(0.065, 0.965, title, fontsize=16, fontweight="bold", color=INK, va="top")
    what = "Ten prefill nodes of the Mooncake testbed, Llama-3 70B in BF16"
    figure.text(0.065, 0.875, what, fontsize=10, color=FAINT, va="top")
    note = "docs/data/mooncake-fast25.json · traces of Qin et al., Mooncake, FAST 2025 · no curve is fitted"
    figure.text(0.065, 0.03, note, fontsize=8, color=FAINT)
    return figure


def panel(ax: Axes, rows: Rows, trace: str) -> None:
    """The curves of one trace, and what local caches would find at the lead that the paper prints."""
    ax.set_title(f"{trace} trace", color=INK, fontsize=11.5, fontweight="bold", loc="left", pad=8)
    for number, (policy, router, label, colour, marker) in enumerate(CURVES):
        found = curve(rows, trace, policy, router)
        ax.plot(*zip(*found, strict=True), color=colour, marker=marker, markersize=5, linewidth=2, zorder=3)
        say(ax, label, found[-1], (8, -LOWER_POINTS.get((trace, number), 0)), colour)
    printed = PRINTED_TOKENS / 1e6
    lead = PAPER_LEADS[trace]
    implied = (printed, dict(curve(rows, trace, "pooled", "conductor"))[printed] / lead)
    ax.plot(*implied, "D", color=INK, markersize=6, markerfacecolor="white", zorder=4)
    say(ax, f"one pool ÷ {lead},\nits lead in the paper", implied, (8, 0), INK)
    ax.axvline(printed, color=FAINT, linewidth=1, linestyle=(0, (1, 2)))
    say(ax, "the paper's size", (printed, 0), (5, 8), FAINT)
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(FixedLocator([0.3, 1, 3, 10, 30]))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xticklabels(["0.3", "1", "3", "10", "30"])
    ax.set_ylim(bottom=0)
    ax.set_xlabel("million tokens that a node caches", color=FAINT, fontsize=9)
    ax.set_ylabel("% of prompt tokens found", color=FAINT, fontsize=9)


def curve(rows: Rows, trace: str, policy: str, router: str) -> list[tuple[float, float]]:
    """Millions of tokens and percents found."""
    return [
        (row["tokens_per_node"] / 1e6, 100 * row["hit_fraction"])
        for row in rows["capacity"]
        if (row["trace"], row["policy"], row["router"]) == (trace, policy, router)
    ]


def say(ax: Axes, text: str, point: tuple[float, float], shift: tuple[float, float], colour: str) -> None:
    """Words on the right of a point."""
    ax.annotate(
        text,
        point,
        xytext=shift,
        textcoords="offset points",
        va="center",
        fontsize=8.5,
        color=colour,
        annotation_clip=False,
    )


def main() -> None:
    """Draw it."""
    experiments = json.loads(DATA.read_text())["experiments"]
    figure = picture({name: experiments[name]["rows"] for name in experiments})
    figure.savefig(PICTURE, format="png", dpi=DPI, metadata={"Software": None})


if __name__ == "__main__":
    main()
