"""The drawing of a topology: layers of switches over nodes, one unit in full, the rest folded.

What stands where is decided by sim.report.scene; here it is painted. Given the loads of a run, each line
takes the colour of what it carried, in five steps that colour-blind people tell apart and that the legend
names, and is pale where it carried nothing. A wedge stands for many lines and takes the colour of its tier.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from io import BytesIO
from pathlib import Path
from textwrap import shorten, wrap
from typing import TYPE_CHECKING, Any

from sim.base.errors import ConfigError
from sim.base.units import show as shown
from sim.report.loads import Loads
from sim.report.scene import WIDTH, scene
from sim.report.shapes import Box, Scene, Strand, Words
from sim.report.style import FAINT, INK
from sim.report.topology import ratio
from sim.results.words import counted, percent, whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DRAW_DPI = 120
COLOURS = 256
FEW = 50
"""Fewer lines than this between two tiers are drawn thicker."""

LINK = "#8A99A8"
MARKED = "#D55E00"
IDLE = "#D9DFE4"
STEPS: tuple[tuple[float, str, str], ...] = (
    (0.01, "#56B4E9", "under 1 %"),
    (0.05, "#0072B2", "1 to 5 %"),
    (0.20, "#E69F00", "5 to 20 %"),
    (0.50, "#D55E00", "20 to 50 %"),
    (float("inf"), "#7A0019", "over 50 %"),
)
"""Up to which share of its capacity a link is shown in which colour, and how the legend says it.

The steps grow, since means over a run are small where peaks are not. Four colours are of Okabe and Ito.
"""

_FILLS: dict[str, tuple[str, str, float]] = {
    "panel": ("#F4F6F8", "#DDE3E8", 0.9),
    "card": ("#FBFCFD", "#C3CCD4", 0.9),
    "node": ("#FFFFFF", "#7C8A97", 0.7),
    "domain": ("#D6EEE5", "#D6EEE5", 0.0),
    "gpu": ("#009E73", "#009E73", 0.0),
    "nic": ("#E69F00", "#E69F00", 0.0),
    "faint node": ("#FFFFFF", "#C3CCD4", 0.7),
    "leaf": ("#56B4E9", "#2B7FB0", 0.8),
    "spine": ("#0072B2", "#00507D", 0.8),
    "core": ("#1F2933", "#1F2933", 0.8),
    "faint leaf": ("#BFE1F6", "#9CCBE6", 0.6),
    "faint spine": ("#9FC7E0", "#7FAFCF", 0.6),
}
_GREYS = {
    "nic": "#1F2933",
    "gpu": "#AAB4BD",
    "domain": "#EDF0F2",
    "leaf": "#A7B2BC",
    "spine": "#74828F",
    "faint leaf": "#D5DBE0",
    "faint spine": "#BCC5CD",
}
"""What has a colour otherwise is grey where links have the colours of their loads."""
_SETTING: dict[str, dict[str, Any]] = {
    "layer": {"fontsize": 11, "fontweight": "bold", "color": INK},
    "note": {"fontsize": 8.5, "color": FAINT},
    "cables": {"fontsize": 8.5, "color": FAINT},
    "card title": {"fontsize": 9.5, "fontweight": "bold", "color": INK},
    "panel title": {"fontsize": 9, "fontweight": "bold", "color": FAINT},
    "domain": {"fontsize": 8.5, "color": "#00734F"},
}
_THICKNESS = {
    "node leaf": (0.45, 0.5),
    "leaf spine": (0.4, 0.3),
    "spine core": (0.35, 0.1),
    "node node": (1.2, 0.9),
}


def draw(figures: Mapping[str, Any], graph: Any | None, loads: Loads | None = None) -> Figure:
    """Draw a topology from its figures (as `sim topo show --json` writes them) and its graph."""
    from matplotlib import rc_context  # noqa: PLC0415 - slow to import
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    laid = scene(figures, graph)
    with rc_context({"font.family": "DejaVu Sans"}):
        figure = Figure(figsize=(WIDTH, laid.height), facecolor="white", dpi=DRAW_DPI)
        FigureCanvasAgg(figure)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(0, WIDTH)
        axes.set_ylim(0, laid.height)
        _paint(axes, laid, loads)
        _captions(axes, laid, figures)
        _legend(axes, laid, loads)
    return figure


def save_drawing(figure: Figure, path: Path) -> None:
    """Write a drawing to a .png or .svg file."""
    if path.suffix not in {".png", ".svg"}:
        problem = f"{path.name} is neither a .png nor a .svg file"
        raise ConfigError("--out", None, None, problem=problem, hint="write a name such as topology.png")
    from matplotlib import rc_context  # noqa: PLC0415 - slow to import

    if path.suffix == ".svg":
        with rc_context({"svg.hashsalt": path.stem}):  # the same names of parts each time
            figure.savefig(path, format="svg", metadata={"Date": None})
        return
    from PIL import Image  # noqa: PLC0415 - slow to import; matplotlib brings it

    drawn = BytesIO()
    figure.savefig(drawn, format="png", metadata={"Software": None})
    palette = (
        Image.open(drawn)
        .convert("RGB")
        .quantize(COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=3, dither=Image.Dither.NONE)
    )
    palette.save(path, format="png", optimize=True)


def colour_of(fraction: float) -> str:
    """The colour of a load; pale where there was none."""
    return IDLE if fraction <= 0 else next(colour for limit, colour, _ in STEPS if fraction < limit)


def _paint(axes: Axes, laid: Scene, loads: Loads | None) -> None:
    for box in laid.boxes:
        if box.kind in {"panel", "card"}:
            _box(axes, box, 1, loads is not None)
    count = Counter(strand.kind for strand in laid.strands)
    if loads is None:
        for strand in sorted(laid.strands, key=lambda strand: strand.is_marked):
            _strand(axes, strand, (MARKED if strand.is_marked else LINK), count[strand.kind] < FEW)
    else:
        used = [(loads.of(strand.joint, strand.kind), strand) for strand in laid.strands]
        for fraction, strand in sorted(used, key=lambda one: one[0]):
            _loaded(axes, strand, fraction, count[strand.kind] < FEW)
    for box in laid.boxes:
        if box.kind not in {"panel", "card"}:
            _box(axes, box, 4, loads is not None)
    for words in laid.words:
        _words(axes, words, loads)


def _fill(kind: str, is_grey: bool) -> tuple[str, str, float]:
    """The colour of a box, that of its edge, and how thick this is."""
    fill, edge, line = _FILLS[kind]
    return (_GREYS[kind], _GREYS[kind], line) if is_grey and kind in _GREYS else (fill, edge, line)


def _box(axes: Axes, box: Box, level: int, is_grey: bool) -> None:
    from matplotlib.patches import FancyBboxPatch  # noqa: PLC0415

    fill, edge, line = _fill(box.kind, is_grey)
    round_by = {"panel": 0.12, "card": 0.1, "node": 0.03, "domain": 0.03, "gpu": 0.01}.get(box.kind, 0.03)
    round_by = min(round_by, box.width / 3, box.height / 3)
    for copy in reversed(range(box.copies)):
        shift = 0.05 * copy
        patch = FancyBboxPatch(
            (box.x + shift + round_by, box.y + shift + round_by),
            box.width - 2 * round_by,
            box.height - 2 * round_by,
            boxstyle=f"round,pad={round_by},rounding_size={round_by}",
            facecolor=fill,
            edgecolor=edge if line else "none",
            linewidth=line,
            zorder=level + {"domain": 0.1, "gpu": 0.2, "nic": 0.2}.get(box.kind, 0.0) - 0.01 * copy,
            alpha=0.8 if box.kind == "domain" else None,
        )
        axes.add_patch(patch)


def _strand(axes: Axes, strand: Strand, colour: str, is_sparse: bool) -> None:
    """A line or a wedge without a load; links inside a node are then not shown."""
    if strand.kind == "nvlink":
        return
    if any(strand.widths):
        _wedge(axes, strand, colour, 0.14)
        return
    width, alpha = (1.0, 0.8) if is_sparse else _THICKNESS[strand.kind]
    if strand.is_marked:
        width, alpha = 1.3 if is_sparse else 0.8, 0.9
    _line(axes, strand, (colour, width, alpha), 3)


def _loaded(axes: Axes, strand: Strand, fraction: float, is_sparse: bool) -> None:
    """A line or a wedge in the colour of its load; idle ones lie thin below the others."""
    if strand.kind == "nvlink":
        if fraction > 0:
            _line(axes, strand, (colour_of(fraction), 3.0, 1.0), 5)
        return
    if any(strand.widths):
        _wedge(axes, strand, colour_of(fraction), 0.16)
        return
    width = 1.4 if is_sparse else 1.5 * _THICKNESS[strand.kind][0]
    look = (colour_of(fraction), width, 0.85) if fraction > 0 else (IDLE, width / 2, 1.0)
    _line(axes, strand, look, 3)


def _line(axes: Axes, strand: Strand, look: tuple[str, float, float], level: int) -> None:
    """A line of a colour, a width and an opacity."""
    colour, width, alpha = look
    axes.plot(
        strand.x, strand.y, color=colour, linewidth=width, alpha=alpha, zorder=level, solid_capstyle="round"
    )


def _wedge(axes: Axes, strand: Strand, colour: str, alpha: float) -> None:
    (low, high), (below, above) = strand.x, (strand.widths[0] / 2, strand.widths[1] / 2)
    corners = [(low - below, strand.y[0]), (low + below, strand.y[0]), (high + above, strand.y[1])]
    corners.append((high - above, strand.y[1]))
    x, y = zip(*corners, strict=True)
    axes.fill(x, y, color=colour, alpha=alpha, linewidth=0, zorder=2)


def _words(axes: Axes, words: Words, loads: Loads | None) -> None:
    role, _, tier = words.role.partition(" ") if words.role.startswith("cables") else (words.role, "", "")
    text = words.text
    load = loads.tiers.get(tier) if loads else None
    if load is not None:
        mean, busiest, peak = (percent(part) for part in astuple(load))
        use = f"\n{mean} mean, {busiest} busiest\npeak {peak}"
        text += use if text else f"NVLink {mean} mean,\n{busiest} busiest"
    axes.text(
        words.x, words.y, text, ha=words.align, va="center", zorder=6, linespacing=1.35, **_SETTING[role]
    )


def _captions(axes: Axes, laid: Scene, figures: Mapping[str, Any]) -> None:
    axes.text(
        0.35, laid.height - 0.42, figures["name"], fontsize=18, fontweight="bold", color=INK, va="center"
    )
    about = "\n".join(wrap(figures["description"], 130, max_lines=2, placeholder=" …"))
    axes.text(0.35, laid.height - 0.7, about, fontsize=10, color=FAINT, va="top", linespacing=1.4)
    axes.text(0.35, 0.5, "  ·  ".join(_facts(figures)), fontsize=10, color=INK, va="center")
    source = shorten("; ".join(figures["source"]), 190, placeholder=" …")
    axes.text(0.35, 0.22, f"Source: {source}", fontsize=8, color=FAINT, va="center")


def _facts(figures: Mapping[str, Any]) -> list[str]:
    fabric = figures["fabric"]
    found = [counted(figures["nodes"], "node"), counted(figures["gpus"], "GPU")]
    if fabric is None:
        return [*found, "no fabric"]
    found += ["1 switch" if fabric["switches"] == 1 else f"{whole(fabric['switches'])} switches"]
    found.append(counted(fabric["cables"], "cable"))
    found.append(f"{fabric['link']}, {shown(fabric['link_bytes_per_s'], 'rate')} a cable")
    if fabric["bisection_bytes_per_s"] is not None:
        share = percent(fabric["bisection_fraction"])
        found.append(f"bisection {shown(fabric['bisection_bytes_per_s'], 'rate')} ({share})")
    over = [tier["oversubscription"] for tier in fabric["tiers"] if tier["oversubscription"] is not None]
    return [*found, f"oversubscription {ratio(max(over))}"] if over else found


def _legend(axes: Axes, laid: Scene, loads: Loads | None) -> None:
    """What the colours mean, in words, at the top right."""
    y = laid.height - 0.42
    kinds = {box.kind for box in laid.boxes}
    squares = [
        (_fill(kind, loads is not None)[0], text)
        for kind, text in (("gpu", "GPU"), ("nic", "NIC"), ("domain", "NVLink domain"))
        if kind in kinds
    ]
    right = _keys(axes, squares, (WIDTH - 0.35, y), "s")
    if loads is not None:
        steps = [(IDLE, "none"), *((colour, text) for _, colour, text in STEPS)]
        left = _keys(axes, steps, (right - 0.3, y), "-")
        axes.text(left, y, "mean use of links", fontsize=9, color=INK, va="center", ha="right")
    elif laid.marked:
        _keys(axes, [(MARKED, f"way of the {laid.marked}"), (LINK, "other links")], (right - 0.3, y), "-")


def _keys(axes: Axes, entries: Sequence[tuple[str, str]], corner: tuple[float, float], sign: str) -> float:
    """Colours with their meanings, the last of them ending at the corner; returns where the first begins."""
    right, y = corner
    for colour, text in reversed(entries):
        right -= 0.6 + 0.068 * len(text)
        ends = [right, right + 0.24] if sign == "-" else [right + 0.16]
        marker = None if sign == "-" else "s"
        axes.plot(
            ends,
            [y] * len(ends),
            color=colour,
            linewidth=3,
            marker=marker,
            markersize=7,
            zorder=6,
            solid_capstyle="round",
        )
        axes.text(right + 0.32, y, text, fontsize=9, color=INK, va="center", zorder=6)
    return right - 0.15
