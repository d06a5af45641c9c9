"""What runs are compared by: a column of their rows each, how it is shown, and which direction is better.

Latencies and goodput take their direction from the table of metrics. Measures without a direction are shown
with their difference, but never called better or worse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sim.results.row import latency_column
from sim.results.words import TIERS
from sim.tables.metrics import METRICS

Kind = Literal["time", "rate", "share", "count", "usd"]
Better = Literal["lower", "higher"]


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure: `column` of a run's row, and its kind, by which it is written."""

    title: str
    column: str
    kind: Kind
    better: Better | None = None
    unit: str = ""


def _latency(metric: str, statistic: str) -> Measure:
    known = METRICS[metric]
    return Measure(
        f"{known.title} {statistic}", latency_column(metric, statistic), "time", known.better, known.unit
    )


MEASURES: tuple[Measure, ...] = (
    Measure("goodput", "goodput_per_s", "rate", METRICS["goodput"].better, "req/s"),
    *[_latency("ttft", statistic) for statistic in ("p50", "p90", "p99")],
    _latency("tpot", "p90"),
    _latency("itl", "p99"),
    *[_latency("e2e", statistic) for statistic in ("p50", "p99")],
    Measure("output", "output_tokens_per_s_per_gpu", "rate", "higher", "tokens/s/GPU"),
    Measure("rent", "rent_usd_per_h", "usd", "lower", "USD/h"),
    Measure("prompt found", "hit_fraction", "share", "higher"),
    *[Measure(f"  in {name}", f"hit_{tier}_fraction", "share") for tier, name in TIERS.items()],
    Measure("not recomputed", "tokens_not_recomputed", "count", "higher", "tokens"),
    Measure("fetch, mean", "fetch_mean_s", "time", "lower", "s"),
    Measure("handoff, mean", "handoff_mean_s", "time", "lower", "s"),
    Measure("  waiting", "handoff_waited_s", "time", "lower", "s"),
    Measure("handoff p99", "handoff_p99_s", "time", "lower", "s"),
    Measure("busiest link", "busiest_link_fraction", "share"),
)

PHASE_WORDS: dict[str, str] = {
    "queue": "prompts wait for prefill",
    "kv_fetch": "prompts wait for cached KV",
    "prefill": "prompts compute",
    "reserve": "handoffs wait for room",
    "transfer": "handoffs take",
    "decode_queue": "sequences wait for decode",
    "decode": "decode takes",
}
"""What happens in a phase, to be followed by how much more or less."""
