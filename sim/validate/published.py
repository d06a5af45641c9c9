"""Published numbers that the simulator can express, and why it cannot express the rest.

Model: an entry is given to the first expression (`sim.validate.servedruns`, `sim.validate.wires`) that
understands its texts. Who understands it predicts its value in its unit, or says what keeps it from that.
What nobody understands is listed with the reason that fits its texts best.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from sim.base.errors import UnsupportedError
from sim.validate import servedruns, wires
from sim.validate.comparison import Comparison, Comparisons, NotComparable
from sim.validate.expression import Prediction
from sim.validate.publishedentry import Entry, entries_of

Expression = Callable[[Entry], Prediction | None]
EXPRESSIONS: tuple[Expression, ...] = (
    servedruns.offline,
    servedruns.closed_loop,
    servedruns.mlperf,
    servedruns.prefill_alone,
    servedruns.prefix_cut,
    wires.all_reduce,
    wires.copy,
    wires.node_pair,
    wires.one_rail,
    wires.product,
)

SPREAD = (
    r"\bD?EP ?\d|\bADP|DeepEP|DP attention|\bEPLB|expert|MoE \(|decode ranks|ranks per|EP 8|combine|dispatch"
)
REASONS: tuple[tuple[str, str], ...] = (
    (r"SIMULATED|simulator speed", "a result of another simulator, not a measurement"),
    (r"trace analysis|Claude models", "a property of a trace, which no timing model predicts"),
    (r"MTP", "speculative decoding is not compared"),
    (SPREAD, "experts or attention spread over replicas (EP, DP attention) are not modelled"),
    (r"production|Kimi$|24 h", "production traffic that is not published"),
    (r"effective request capacity", "searches for capacity over a trace that does not come along"),
    (r"trace|schedul|agent|AIPerf|hit", "needs a trace or corpus that does not come along"),
    (r"MLPerf", "neither lengths of prompts nor how GPUs are shared are published"),
    (r"all.?gather|reduce.?scatter|all.?to.?all", "a collective that no modelled operator uses"),
    (r"72 GPUs over NVLink|MNNVL", "more GPUs of a rack than a replica of the catalogue's nodes holds"),
    (r"storage|Storage|NFS|NVMe|SSD|nvme", "needs a file system or drives that are not described"),
    (r"PD disaggregation|prefill-to-decode", "the software of the transfer is not described, only its links"),
    (r"block size|blocks", "depends on the size of blocks, which the model of a link does not know"),
    (r"TCP|health check|congestion", "depends on software or settings that are not described"),
)
OTHERWISE = "what was run is not described well enough to be simulated"


def published(path: Path) -> Comparisons:
    """Compare every entry of a file of published numbers."""
    rows: list[Comparison] = []
    left: list[NotComparable] = []
    for entry in entries_of(path):
        try:
            prediction = _predicted(entry)
        except UnsupportedError as error:
            left.append(NotComparable(entry.id, error.problem))
            continue
        if prediction is None:
            left.append(NotComparable(entry.id, _reason(entry)))
            continue
        rows.append(
            Comparison(
                id=entry.id,
                metric=entry.kind,
                predicted=prediction.value,
                measured=entry.value,
                unit=entry.unit,
                group=prediction.group,
                source=f"{entry.source_title} {entry.source_url}",
                fitted=prediction.fitted,
            )
        )
    return Comparisons("published", tuple(rows), tuple(left))


def _predicted(entry: Entry) -> Prediction | None:
    for expression in EXPRESSIONS:
        prediction = expression(entry)
        if prediction is not None:
            return prediction
    return None


def _reason(entry: Entry) -> str:
    """Why nobody understands an entry."""
    texts = " | ".join((entry.metric, entry.hardware, entry.model, entry.parallelism, entry.workload))
    return next((reason for pattern, reason in REASONS if re.search(pattern, texts)), OTHERWISE)
