"""The figures of a run: everything that summary.json holds and every screen shows.

Rates are per second of the measured window. Output per GPU counts the output tokens of measured
requests that finished, over the window and all GPUs of the cluster. Utilisation of replicas and links is
over the window. Values that do not exist are None.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from sim.config.scenario import Cost
from sim.config.slo import SloLimit
from sim.results.cost import cost_figures
from sim.results.energy import energy_figures
from sim.results.kvpool import kv_pool_figures
from sim.results.links import busiest, waits_of
from sim.results.measured import Measured
from sim.results.ratios import finite, ratio
from sim.results.slo import good_requests, judge
from sim.results.stats import Distribution
from sim.tables.metrics import LATENCIES, STATISTICS
from sim.tables.schema import PHASES, PS_PER_S, STATUSES
from sim.tables.uses import Outcome, ReplicaUse

Figures = dict[str, Any]
CATALOGUE = Cost()
"""Prices and powers of the catalogue."""
CURVE_FRACTIONS: tuple[float, ...] = (
    *(step / 200 for step in range(198)),
    *(step / 1000 for step in range(990, 1000)),
    1.0,
)
"""Where a curve of a distribution is kept: every half percent, the last one in tenths."""


def figures_of(
    measured: Measured, outcome: Outcome, limits: Sequence[SloLimit], cost: Cost = CATALOGUE
) -> Figures:
    """All figures of a run that rest on its tables and its outcome."""
    window_ps = outcome.window_ps[1] - outcome.window_ps[0]
    window_s = window_ps / PS_PER_S
    verdicts = [asdict(verdict) for verdict in judge(limits, measured)]
    return {
        "slo_met": _all_met([verdict["is_met"] for verdict in verdicts]),
        "slo": [{**verdict, "value_s": finite(verdict["value_s"])} for verdict in verdicts],
        **{f"{name}_s": _latency(measured.latencies[name]) for name in LATENCIES},
        "itl_curve": curve_of(measured.latencies["itl"]),
        **_counts(measured),
        **_rates(measured, window_s, outcome.gpus, limits),
        **_prompts(measured),
        "phases_s": _phases(measured),
        "pools": _pools(outcome.replicas, window_ps),
        "cost": cost_figures(measured, outcome, cost),
        "energy": energy_figures(measured, outcome, cost),
        "links": busiest(outcome.links, window_s),
        "transfers": waits_of(measured, outcome.links),
        "kv_pool": kv_pool_figures(measured, outcome),
        "rejected_reasons": dict(outcome.rejected_reasons),
        "skipped_rows": outcome.skipped_rows,
        "gpus": outcome.gpus,
        "window_s": window_s,
        "simulated_s": outcome.simulated_ps / PS_PER_S,
        "interrupted": outcome.interrupted,
        "events": outcome.events,
        "cpu_s": outcome.cpu_s,
    }


def curve_of(latency: Distribution) -> dict[str, list[float]]:
    """A distribution as a curve: seconds at each of CURVE_FRACTIONS; empty where there is no sample."""
    if not latency.count:
        return {"fraction": [], "value_s": []}
    return {
        "fraction": list(CURVE_FRACTIONS),
        "value_s": [latency.quantile(fraction) for fraction in CURVE_FRACTIONS],
    }


def _all_met(answers: Iterable[bool | None]) -> bool | None:
    """None where there is no limit, or none that could be judged."""
    known = [answer for answer in answers if answer is not None]
    return all(known) if known else None


def _latency(latency: Distribution) -> dict[str, Any]:
    values = {name: finite(latency.statistic(name)) for name in STATISTICS}
    weak = [name for name in STATISTICS if latency.count and latency.is_weak(name)]
    return {**values, "samples": latency.count, "weak": weak}


def _counts(measured: Measured) -> dict[str, int]:
    by_status = measured.requests["status"].value_counts()
    ended = {f"requests_{status}": int(by_status.get(status, 0)) for status in STATUSES}
    return {"requests_measured": len(measured.requests), **ended}


def _rates(
    measured: Measured, window_s: float, gpus: int, limits: Sequence[SloLimit]
) -> dict[str, float | None]:
    is_good = good_requests(limits, measured)
    good = int(is_good.sum())
    finished = measured.requests[measured.is_finished]
    return {
        "offered_per_s": ratio(len(measured.requests), window_s),
        "goodput_per_s": ratio(good, window_s),
        "goodput_fraction": ratio(good, len(measured.requests)),
        "good_output_tokens_per_s": ratio(int(measured.requests["output_tokens"][is_good].sum()), window_s),
        "output_tokens_per_s_per_gpu": ratio(int(finished["output_tokens"].sum()), window_s * gpus),
    }


def _prompts(measured: Measured) -> dict[str, float | None]:
    """Prompt tokens of finished requests: computed, and the share found in a cache."""
    finished = measured.requests[measured.is_finished]
    prompt, cached = int(finished["input_tokens"].sum()), int(finished["cached_tokens"].sum())
    return {"prefill_tokens": prompt - cached, "hit_fraction": ratio(cached, prompt)}


def _phases(measured: Measured) -> dict[str, float | None]:
    """Mean seconds in each phase over measured requests that finished; they add up to the mean end to end."""
    finished = measured.requests[measured.is_finished]
    return {name: finite(float(finished[f"phase_{name}_s"].mean())) for name in PHASES}


def _pools(replicas: Sequence[ReplicaUse], window_ps: int) -> list[dict[str, Any]]:
    pools: dict[str, list[ReplicaUse]] = {}
    for replica in replicas:
        pools.setdefault(replica.pool, []).append(replica)
    return [
        {
            "name": name,
            "role": members[0].role,
            "replicas": len(members),
            "gpus": sum(replica.gpus for replica in members),
            "utilisation": ratio(sum(replica.busy_ps for replica in members), window_ps * len(members)),
            "requests": sum(replica.requests for replica in members),
            "tokens": sum(replica.tokens for replica in members),
            "mean_batch": ratio(
                sum(replica.decoded for replica in members), sum(replica.steps for replica in members)
            ),
            "step_tokens": ratio(
                sum(replica.step_tokens for replica in members), sum(replica.decoded for replica in members)
            ),
            "preempted": sum(replica.preempted for replica in members),
            "swapped": sum(replica.swapped for replica in members),
            "out_of_memory": sum(replica.shortages for replica in members),
        }
        for name, members in pools.items()
    ]
