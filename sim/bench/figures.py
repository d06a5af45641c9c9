"""What a benchmark case says of itself, and bench.json where it is kept."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import simpy

FILE = Path("bench.json")
TIMEOUTS = 1_000_000


@dataclass(frozen=True, slots=True)
class Figures:
    """One entry of bench.json. `requests` counts transfers in the cases of the network alone."""

    name: str
    requests: int
    cpu_s: float
    requests_per_cpu_s: float
    events_per_request: float
    peak_rss_bytes: int
    simpy_events_per_cpu_s: float
    flow_events_per_cpu_s: float | None = None

    @property
    def scale(self) -> float:
        """The factor that turns a rate into that of a machine of 1 M SimPy time-outs per CPU-second."""
        return 1e6 / self.simpy_events_per_cpu_s


def peak_rss_bytes() -> int:
    """The most memory that this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def simpy_events_per_cpu_s() -> float:
    """Bare SimPy: one process that waits for one time-out after the other."""
    env = simpy.Environment()

    def waiter() -> simpy.events.ProcessGenerator:
        for _ in range(TIMEOUTS):
            yield env.timeout(1)

    env.process(waiter())
    started = time.process_time()
    env.run()
    return TIMEOUTS / (time.process_time() - started)


def keep(figures: Figures, order: Sequence[str], file: Path = FILE) -> None:
    """Write an entry to bench.json, in place of the one of the same name; the others stay."""
    entries = json.loads(file.read_text()) if file.exists() else []
    others = [entry for entry in entries if entry["name"] != figures.name]
    entries = sorted([*others, asdict(figures)], key=lambda entry: order.index(entry["name"]))
    file.write_text(json.dumps(entries, indent=2) + "\n")


def table(entries: Iterable[Figures]) -> str:
    """The entries for people."""
    rows = [
        (
            "case",
            "requests",
            "cpu s",
            "req/cpu-s",
            "scaled",
            "events/req",
            "flow ev/cpu-s",
            "scaled",
            "peak MB",
        )
    ]
    for each in entries:
        flows = each.flow_events_per_cpu_s
        rows.append(
            (
                each.name,
                f"{each.requests:,}",
                f"{each.cpu_s:.2f}",
                f"{each.requests_per_cpu_s:,.0f}",
                f"{each.requests_per_cpu_s * each.scale:,.0f}",
                f"{each.events_per_request:.2f}",
                "" if flows is None else f"{flows:,.0f}",
                "" if flows is None else f"{flows * each.scale:,.0f}",
                f"{each.peak_rss_bytes / 1e6:,.0f}",
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(
            [
                row[0].ljust(widths[0]),
                *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
            ]
        )
        for row in rows
    ]
    return "\n".join([*lines, "scaled: where bare SimPy does 1 M time-outs per CPU-second"])
