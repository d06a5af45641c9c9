"""One look for every picture: colours that colour-blind people tell apart, labels instead of legends.

Figures are made without pyplot, so that drawing leaves no global state behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALETTE: tuple[str, ...] = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""After Okabe and Ito; a run keeps its colour in every panel."""

INK = "#1F2933"
FAINT = "#6B7785"
GRID = "#E4E8EC"
BROKEN = "#B3261E"
KEPT = "#00734F"
DPI = 150

_SETTINGS: Any = {
    "font.size": 9.5,
    "font.family": "DejaVu Sans",
    "text.color": INK,
    "axes.labelcolor": FAINT,
    "axes.edgecolor": "#B8C0C8",
    "axes.linewidth": 0.8,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "axes.labelsize": 9,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
}


def panels(rows: int, columns: int, size_inches: tuple[float, float]) -> tuple[Figure, list[Axes]]:
    """A white figure with a grid of axes, row by row."""
    from matplotlib import rc_context  # noqa: PLC0415 - slow to import
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    with rc_context(_SETTINGS):
        figure = Figure(figsize=size_inches, facecolor="white", dpi=DPI)
        FigureCanvasAgg(figure)
        axes = [figure.add_subplot(rows, columns, i + 1) for i in range(rows * columns)]
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
        each.set_axisbelow(True)
        each.grid(visible=True, which="major")
        each.tick_params(length=3, which="major")
        each.tick_params(length=0, which="minor")
    return figure, axes
