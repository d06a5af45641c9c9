"""Every metric once: its name, what it means, its unit, and which direction is better."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

STATISTICS: tuple[str, ...] = ("mean", "p50", "p90", "p99", "p99.9", "max")


@dataclass(frozen=True, slots=True)
class Metric:
    """A quantity people ask about.

    `column` names it in requests.parquet (None where it has no value per request), `per` says what one
    sample is, `better` which direction is good.
    """

    name: str
    title: str
    unit: str
    meaning: str
    column: str | None
    per: Literal["request", "token", "run"]
    better: Literal["lower", "higher"]


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("ttft", "TTFT", "s", "first token minus arrival", "ttft_s", "request", "lower"),
        Metric(
            "tpot", "TPOT", "s", "(end to end - TTFT) / (output tokens - 1)", "tpot_s", "request", "lower"
        ),
        Metric(
            "itl", "ITL", "s", "every gap between consecutive tokens of a request", None, "token", "lower"
        ),
        Metric("e2e", "end to end", "s", "last token minus arrival", "e2e_s", "request", "lower"),
        Metric(
            "goodput",
            "goodput",
            "req/s",
            "requests per second that meet every limit of the SLO",
            None,
            "run",
            "higher",
        ),
        Metric(
            "output_rate",
            "output",
            "tokens/s/GPU",
            "output tokens of the window per second and GPU",
            None,
            "run",
            "higher",
        ),
    )
}

LATENCIES: tuple[str, ...] = ("ttft", "tpot", "itl", "e2e")
