"""Pictures of a run, each with the question that it answers.

Each latency has a panel: the share of samples (requests, or gaps between tokens) up to a time, on a
logarithmic axis, with p50, p90 and p99 marked and the limits of the SLO as lines. What is drawn is what
`curve` gives, at the fractions of the tables, so that picture and table cannot differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sim.report.style import BROKEN, DPI, FAINT, INK, KEPT, PALETTE, panels
from sim.results.metrics import curve_of
from sim.results.run import Run
from sim.results.stats import distribution
from sim.results.words import counts, mark, number, percent, seconds, whole
from sim.tables.metrics import LATENCIES, METRICS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE_INCHES = (10.0, 7.0)
MARKED = ("p50", "p90", "p99")
FAR_RIGHT = 0.82
"""From here on, as a part of the axis, labels stand on the left of their dots."""

_QUESTIONS = {
    "ttft": "for the first token",
    "tpot": "for each later token, on average over a request",
    "itl": "from one token to the next",
    "e2e": "for the whole answer",
}


@dataclass(frozen=True, slots=True)
class Curve:
    """A distribution: the time within which each fraction of the samples lies."""

    fraction: tuple[float, ...]
    value_s: tuple[float, ...]

    def body(self) -> tuple[float, ...]:
        """The times that the axis shows: from half a percent to p99.9."""
        shown = zip(self.fraction, self.value_s, strict=True)
        return tuple(value for part, value in shown if 0.005 <= part <= 0.999 and value > 0)

    def share_up_to(self, limit_s: float) -> float:
        """The fraction that lies within a time, between the points of the curve."""
        return float(np.interp(limit_s, self.value_s, self.fraction, left=0.0, right=1.0))


def curve(run: Run, metric: str) -> Curve:
    """The distribution of a latency in a run; empty where there is no sample."""
    if metric == "itl":
        points = run.figures["itl_curve"]
    else:
        measured = run.requests[run.requests["measured"]]
        points = curve_of(distribution(measured[f"{metric}_s"].to_numpy()))
    return Curve(tuple(points["fraction"]), tuple(points["value_s"]))


def cdf(runs: Run | Sequence[Run], metrics: Sequence[str] = LATENCIES) -> Figure:
    """A panel for each latency, a curve for each run."""
    shown = [runs] if isinstance(runs, Run) else list(runs)
    rows = (len(metrics) + 1) // 2
    figure, axes = panels(rows, min(len(metrics), 2), (SIZE_INCHES[0], SIZE_INCHES[1] * rows / 2))
    for ax, metric in zip(axes, metrics, strict=False):
        _panel(ax, shown, metric)
    for ax in axes[len(metrics) :]:
        ax.set_visible(False)
    _captions(figure, shown)
    return figure


def save_cdf(run: Run, path: Path) -> None:
    """Draw the latencies of a run into a PNG file."""
    cdf(run).savefig(path, format="png", dpi=DPI, metadata={"Software": None})


def _panel(ax: Axes, runs: Sequence[Run], metric: str) -> None:
    curves = [curve(run, metric) for run in runs]
    per = "requests" if METRICS[metric].per == "request" else "gaps between tokens"
    title = METRICS[metric].title
    heading: dict[str, Any] = {
        "transform": ax.transAxes,
        "fontsize": 11.5,
        "fontweight": "bold",
        "color": INK,
    }
    ax.text(0, 1.125, title[0].upper() + title[1:], **heading)
    ax.text(0, 1.04, _QUESTIONS[metric], transform=ax.transAxes, color=FAINT, fontsize=8.5)
    ax.set_ylabel(f"% of {per}", color=FAINT, fontsize=9)
    limits = [entry for entry in runs[0].figures["slo"] if entry["metric"] == metric]
    _axes(ax, [value for one in curves for value in one.body()], [entry["limit_s"] for entry in limits])
    for i, (run, one) in enumerate(zip(runs, curves, strict=True)):
        colour = PALETTE[i % len(PALETTE)]
        ax.plot(one.value_s, [100 * part for part in one.fraction], color=colour, linewidth=2.2, zorder=3)
        if len(runs) == 1:
            _mark(ax, run.figures[f"{metric}_s"], colour)
    if not any(one.value_s for one in curves):
        ax.text(0.5, 0.5, "nothing measured", transform=ax.transAxes, ha="center", color=FAINT)
    for entry in limits:
        _limit(ax, entry, share_within(runs[0], entry, curves[0]))


def _axes(ax: Axes, values: Sequence[float], limits: Sequence[float]) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: PLC0415 - slow

    low, high = min(values, default=0.1), max(values, default=10.0)
    for limit_s in limits:
        low = min(low, limit_s / 1.15, limit_s * (limit_s / high) ** 0.5)  # room for its label on the left
        high = max(high, limit_s * 1.15)
    ax.set_xscale("log")
    ax.set_xlim(low / 1.1, high * (high / low) ** 0.14)  # room for the label of p99 on the right
    ax.xaxis.set_major_locator(LogLocator(subs=_subdivisions(high / low)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_ylim(0, 102)
    ax.set_yticks([0, 25, 50, 75, 90, 100])
    ax.tick_params(labelsize=8.5, labelcolor=FAINT)


def _subdivisions(span: float) -> tuple[float, ...]:
    """Which multiples of a power of ten get a tick: the more, the shorter the axis."""
    if span < 4:
        return (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)
    return (1.0, 2.0, 5.0) if span < 60 else (1.0, 3.0) if span < 2000 else (1.0,)


def short(value_s: float) -> str:
    """A time on an axis: 20 ms, 1.5 s."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value_s >= scale * 0.9999:
            return f"{value_s / scale:,.4g} {unit}".replace(",", " ")
    return f"{value_s / 1e-6:.3g} µs"


def _mark(ax: Axes, latency: dict[str, Any], colour: str) -> None:
    """Dots with the values of the table on the curve, their labels in the free space below or left of it."""
    for name in MARKED:
        if latency[name] is None:
            continue
        point = (latency[name], float(name[1:]))
        ax.plot(
            *point, "o", color=colour, markersize=5.5, markeredgecolor="white", markeredgewidth=1.2, zorder=4
        )
        is_far_right = _across(ax, point[0]) > FAR_RIGHT
        ax.annotate(
            f"{name}  {seconds(latency[name])}",
            point,
            xytext=(-8, -3) if is_far_right else (7, -12),
            textcoords="offset points",
            ha="right" if is_far_right else "left",
            fontsize=8.5,
            color=INK,
            path_effects=_halo(),
            zorder=5,
        )


def share_within(run: Run, entry: dict[str, Any], one: Curve) -> float:
    """The share of samples within a limit; those that never came about are not."""
    samples = run.figures[f"{entry['metric']}_s"]["samples"]
    return one.share_up_to(entry["limit_s"]) * samples / (samples + entry["missing"]) if samples else 0.0


def _limit(ax: Axes, entry: dict[str, Any], share: float) -> None:
    """A limit of the SLO, and the share of the samples that keep it, where the curve leaves room."""
    limit_s = entry["limit_s"]
    colour = KEPT if entry["is_met"] else BROKEN
    ax.axvline(limit_s, color=colour, linewidth=1.3, linestyle=(0, (5, 3)), zorder=2)
    is_missed = share < 0.5
    is_right = not is_missed and _across(ax, limit_s) < 0.68
    ax.annotate(
        f"{percent(share)} within {short(limit_s)}\n{mark(entry['is_met'])} limit on {entry['statistic']}",
        (limit_s, 62 if is_missed else 8),
        xytext=(6 if is_right else -6, 0),
        textcoords="offset points",
        ha="left" if is_right else "right",
        color=colour,
        fontsize=8.5,
        linespacing=1.4,
        path_effects=_halo(),
        zorder=5,
    )


def _across(ax: Axes, value_s: float) -> float:
    """How far to the right a time stands on its axis, from 0 to 1."""
    place: float = ax.transAxes.inverted().transform(ax.transData.transform((value_s, 0)))[0]
    return place


def _halo() -> list[Any]:
    """A white edge around letters, so that lines behind them do not disturb."""
    from matplotlib.patheffects import withStroke  # noqa: PLC0415 - slow

    return [withStroke(linewidth=3, foreground="white")]


def _captions(figure: Figure, runs: Sequence[Run]) -> None:
    figures = runs[0].figures
    figure.subplots_adjust(left=0.065, right=0.975, top=0.81, bottom=0.105, hspace=0.52, wspace=0.17)
    figure.text(0.065, 0.965, "How long do users wait?", fontsize=16, fontweight="bold", color=INK, va="top")
    load = f"{number(figures['offered_per_s'])} requests/s on {whole(figures['gpus'])} GPUs"
    figure.text(0.065, 0.915, f"{figures['name']} · {load}", fontsize=10, color=FAINT, va="top")
    notes = [
        f"{counts(figures)} · window {number(figures['window_s'])} s",
        f"seed {figures['seed']} · digest {figures['digest']}",
    ]
    figure.text(0.065, 0.02, " · ".join(notes), fontsize=8, color=FAINT)
