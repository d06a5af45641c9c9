"""The figures of a run in words: the same on screen, in a notebook and on a plot.

Latencies are shown in the unit that fits their row, rates and shares with three digits.
A value that does not exist is a dash.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sim.tables.metrics import LATENCIES, METRICS, STATISTICS

if TYPE_CHECKING:
    from sim.results.metrics import Figures

NOTHING = "–"
BARS = "▁▂▃▄▅▆▇█"
WEAK = "*"
_UNITS: tuple[tuple[str, float], ...] = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6))
LINK_KINDS: dict[str, str] = {
    "nic_tx": "NICs, out",
    "nic_rx": "NICs, in",
    "leaf_up": "leaf to spine",
    "leaf_down": "spine to leaf",
    "spine_up": "spine to core",
    "spine_down": "core to spine",
    "nvlink_tx": "GPU links, out",
    "nvlink_rx": "GPU links, in",
    "pcie_up": "GPU to host",
    "pcie_down": "host to GPU",
    "dram": "host memory",
    "dram_rdma": "RDMA of host memory",
    "nvme": "NVMe",
    "nvme_write": "NVMe, writes",
}
"""What kinds of link are called on screens; kinds that are not here are shown as they are."""
TIERS: dict[str, str] = {"hbm": "HBM", "dram": "DRAM", "nvme": "NVMe"}
"""What tiers of memory are called on screens."""
_SECONDS_FROM = {"e2e": 1.0}
"""From which mean on a latency is shown in seconds; ten seconds where nothing is said."""


def headline(figures: Figures) -> tuple[str, str]:
    """What was run, and what identifies it."""
    return str(figures["name"]), f"seed {figures['seed']} · digest {figures['digest']}"


def verdict(entry: dict[str, Any]) -> str:
    """One limit of the SLO: `ttft p90   412 ms < 500 ms`, without its mark."""
    sign = "<=" if "<=" in entry["limit"] else "<"
    limit = entry["limit"].split(sign, 1)[1].strip()
    if entry["is_met"] is None:
        value = "nothing measured"
    elif entry["value_s"] is None:
        value = "never"
    else:
        value = _apart(entry["value_s"], entry["limit_s"])
    return f"{entry['metric'] + ' ' + entry['statistic']:<9} {value:>8} {sign} {limit}"


def _apart(value_s: float, limit_s: float) -> str:
    """A duration with enough digits to tell it from its limit."""
    text = seconds(value_s)
    if text != seconds(limit_s) or value_s == limit_s:
        return text
    unit, scale = next(pair for pair in _UNITS if value_s >= pair[1] or pair is _UNITS[-1])
    texts = (f"{value_s / scale:.{digits}f}" for digits in range(3, 12))
    return next((f"{text} {unit}" for text in texts if float(text) != limit_s / scale), f"{value_s} s")


def mark(is_met: bool | None) -> str:
    """A sign that does without colour."""
    return {True: "✓", False: "✗", None: "~"}[is_met]


def goodput(figures: Figures) -> str:
    """How much of the offered load was served well, and what each GPU gave."""
    good, offered = figures["goodput_per_s"], figures["offered_per_s"]
    served = f"{number(good)} of {number(offered)} req/s ({percent(figures['goodput_fraction'])})"
    return f"{served:<32} {number(figures['output_tokens_per_s_per_gpu'])} output tokens/s/GPU"


def latency_table(figures: Figures) -> list[list[str]]:
    """Rows of cells: name, unit and a value for each statistic; a star marks a weak quantile."""
    return [_latency_row(name, figures[f"{name}_s"]) for name in LATENCIES]


def _latency_row(metric: str, latency: dict[str, Any]) -> list[str]:
    unit, scale = unit_for(metric, latency["mean"])
    cells = [
        NOTHING if latency[name] is None else number(latency[name] / scale) + WEAK * (name in latency["weak"])
        for name in STATISTICS
    ]
    return [METRICS[metric].title, unit, *cells]


def unit_for(metric: str, mean_s: float | None) -> tuple[str, float]:
    """The unit in which a latency reads well, and how many seconds it is."""
    if mean_s is not None and mean_s >= _SECONDS_FROM.get(metric, 10.0):
        return _UNITS[0]
    return _UNITS[2] if mean_s is not None and mean_s < 1e-4 else _UNITS[1]


def aligned(rows: Sequence[Sequence[str]], left: int = 2) -> list[str]:
    """Rows as lines with columns that line up; stars hang to the right of numbers."""
    widths = [max(len(row[column].rstrip(WEAK)) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            _cell(cell, width, i < left) for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _cell(cell: str, width: int, is_left: bool) -> str:
    bare = cell.rstrip(WEAK)
    return f"{bare:<{width}}" if is_left else f"{bare:>{width}}" + (WEAK if bare != cell else " ")


def counts(figures: Figures) -> str:
    """How many requests the figures rest on, and what became of the others."""
    measured, finished = figures["requests_measured"], figures["requests_finished"]
    others = [
        f"{whole(count)} {status.replace('_', ' ')}"
        for status in ("unfinished", "rejected", "timed_out", "cancelled", "failed")
        if (count := figures[f"requests_{status}"])
    ]
    if not measured:
        return "no request measured"
    fate = "all finished" if not others else f"{whole(finished)} finished, {', '.join(others)}"
    return f"{counted(measured, 'request')} measured, {fate}"


def number(value: float | None) -> str:
    """Three digits at least, thousands apart; whole numbers from 100 on."""
    if value is None:
        return NOTHING
    size = abs(value)
    if size >= 99.95:
        return whole(round(value))
    decimals = 1 if size >= 9.995 else 2 if size >= 0.9995 else 3
    return f"{value:.{decimals}f}" if value else "0"


def whole(value: int) -> str:
    """A count, thousands apart."""
    return f"{value:,}".replace(",", " ")


def counted(value: int, noun: str) -> str:
    """A count of things: 1 replica, 2 replicas."""
    return f"{whole(value)} {noun}" + "s" * (value != 1)


def percent(fraction: float | None) -> str:
    """A share in percent, with as many digits as it takes not to say 100 or 0 where it is not."""
    if fraction is None:
        return NOTHING
    value = round(100 * fraction, 9)
    texts = (f"{value:.{digits}f}" for digits in range(6))
    return (
        next((text for text in texts if float(text) not in (0, 100) or value in (0, 100)), repr(value)) + " %"
    )


def seconds(value_s: float | None) -> str:
    """A duration with the unit that fits."""
    if value_s is None:
        return NOTHING
    for unit, scale in _UNITS:
        if abs(value_s) >= scale:
            return f"{number(value_s / scale)} {unit}"
    return f"{number(value_s / 1e-6)} us" if value_s else "0 s"


def link_kind(kind: str) -> str:
    """What a kind of link is called."""
    return LINK_KINDS.get(kind, kind)


def spark(fractions: Sequence[float]) -> str:
    """Fractions over time as a row of bars, of full height at one."""
    top = len(BARS) - 1
    return "".join(BARS[min(max(-int(-fraction * top // 1), 0), top)] for fraction in fractions)


def size(size_bytes: float) -> str:
    """An amount of bytes with the unit that fits."""
    for unit, scale in (("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size_bytes >= scale:
            return f"{number(size_bytes / scale)} {unit}"
    return f"{whole(round(size_bytes))} bytes"


def count_short(value: float | None) -> str:
    """A large count with three digits: 1.23 M."""
    if value is None:
        return NOTHING
    for unit, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if value >= scale:
            return f"{number(value / scale)} {unit}"
    return whole(round(value))
