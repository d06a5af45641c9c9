"""What an engine of this project took on H200, request by request, beside the simulator with its roofline.

Model: the scenarios of the data folder, played whole: one H200 that computes prompts and decodes (light and
long prompts), two of which one does each, and one that only prefills, without and with a pool of blocks in
host memory. Compared are the median and the 90th percentile of TTFT, of TPOT and of the time to the end.
Steps are those of the roofline, no table takes part. Rows are `fitted`: what the engine's host does between
steps, and how it fetches blocks, was read from these runs.
Units: milliseconds. Source: measured by this project, November 2026 (comments of h200-runs.csv).
Ignores: single requests, and the 99th percentile, to which each run has few.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from sim import api
from sim.results.run import Run
from sim.validate.comparison import Comparison
from sim.validate.rows import rows_of

NEEDED = ("run", "metric", "fraction", "measured_s")
RUNS: Mapping[str, tuple[str, str | None]] = {
    "colocated-light": ("h200-colocated.yaml", None),
    "colocated-long": ("h200-colocated.yaml", "long"),
    "disagg-light": ("h200-disagg.yaml", None),
    "prefill-alone": ("h200-prefill.yaml", "alone"),
    "prefill-with-pool": ("h200-prefill.yaml", None),
}
"""Runs by name: the scenario, and its variant."""

METRICS = {"ttft": "ttft", "tpot": "tpot", "e2e": "latency"}
"""Latencies of requests, and the metric that a comparison has for each."""


def served_h200(folder: Path) -> Iterator[Comparison]:
    """Compare the runs whose percentiles lie in a folder."""
    for row in rows_of(folder / "h200-runs.csv", NEEDED):
        name, metric, fraction = row.text("run"), row.text("metric"), row.number("fraction")
        took = _played(folder, name).requests[f"{metric}_s"]
        yield Comparison(
            id=f"h200-runs/{name}/{metric}/p{100 * fraction:g}",
            metric=METRICS[metric],
            predicted=1000 * float(took.quantile(fraction)),
            measured=1000 * row.number("measured_s"),
            unit="ms",
            group=f"h200 serving, {name}",
            source="an engine of this project on NVIDIA H200, November 2026",
            fitted=True,
        )


@cache
def _played(folder: Path, name: str) -> Run:
    """A run as it is simulated."""
    scenario, variant = RUNS[name]
    return api.run(api.load(folder / scenario, variant=variant))
