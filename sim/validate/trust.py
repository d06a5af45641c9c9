"""How far a set speaks for the simulator, in sentences: errors of rows fitted to or not, and the order."""

from __future__ import annotations

from collections.abc import Iterator

from sim.validate.comparison import Comparisons, Errors
from sim.validate.page import percent
from sim.validate.ranking import order_within_groups

TOLD = ("ttft", "tpot", "throughput")
"""Metrics that a user of an engine feels, or pays for."""
RATIO = 1.1


def trust(each: Comparisons) -> str:
    """What the rows of a set say, a sentence for each metric, and one for the order of pairs."""
    sentences = [sentence for metric in TOLD for sentence in _of_metric(each, metric)]
    order = order_within_groups((row for row in each.rows if row.metric in TOLD), RATIO)
    if order.share is not None:
        sentences.append(
            f"Of {order.pairs:,} pairs of runs that were measured to differ by a tenth or more, "
            f"{percent(order.share)} are predicted the right way round."
        )
    if not sentences:
        sentences.append("No row says what a user feels.")
    return f"Set {each.name}. " + " ".join(sentences)


def _of_metric(each: Comparisons, metric: str) -> Iterator[str]:
    name = metric.upper() if metric != "throughput" else metric
    for is_fitted, which in ((False, "that nothing was fitted to"), (True, "that took part in a fit")):
        errors = Errors.of(row for row in each.rows if row.metric == metric and row.fitted == is_fitted)
        if errors is not None:
            yield (
                f"Half of {errors.count:,} rows of {name} {which} are predicted to "
                f"{percent(errors.median_abs)}, the worst is off by {percent(errors.worst_abs)}."
            )
