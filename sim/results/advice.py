"""Doubts about a result, each with a remedy that names the key to change.

A doubt is about what a reader could take the figures for: quantiles of too few samples, percentiles of
the requests that happened to finish, a load that grows without end, a link that is full.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from sim.base.errors import Advice
from sim.config.scenario import Scenario
from sim.results.measured import Measured
from sim.results.stats import SAMPLES_BEYOND, samples_beyond
from sim.results.words import counted, percent, seconds, whole
from sim.tables.schema import PS_PER_S
from sim.tables.uses import LinkUse, Outcome, ReplicaUse

UNFINISHED_FRACTION = 0.01
GROWTH_S_PER_S = 0.02
FULL_FRACTION = 0.95
PREEMPTED_FRACTION = 0.01
_WAITS = {"prefill": ("route", "queue"), "decode": ("reserve", "decode_queue", "preempted")}
_COLOCATED_WAITS = {"colocated": ("queue", "decode_queue", "preempted")}


def advice_on(measured: Measured, outcome: Outcome, scenario: Scenario) -> list[Advice]:
    """Every doubt about a run, the gravest first."""
    if outcome.interrupted:
        return [
            Advice("interrupted: the figures are of the part that was simulated", "run it again to the end")
        ]
    if measured.requests.empty:
        remedy = "lengthen run.duration, shorten run.warmup, or look at the trace with `sim trace info`"
        return [Advice("no request arrived in the measured window", remedy)]
    return [
        *_skipped(outcome),
        *_overload(measured, outcome, scenario),
        *_preempted(outcome),
        *_unended(measured, outcome),
        *outcome.doubts,
        *_full_links(outcome.links),
        *_weak_quantiles(measured, outcome, scenario),
    ]


def _skipped(outcome: Outcome) -> Iterator[Advice]:
    if outcome.skipped_rows:
        rows = counted(outcome.skipped_rows, "row")
        yield Advice(f"{rows} of the trace could not be used", "see which with `sim trace info`")


def _overload(measured: Measured, outcome: Outcome, scenario: Scenario) -> Iterator[Advice]:
    """Waiting that grows with the instant of arrival: a straight line through all measured requests."""
    arrived_s = measured.requests["arrived_at_s"].to_numpy()
    is_colocated = all(replica.role == "colocated" for replica in outcome.replicas)
    for role, phases in (_COLOCATED_WAITS if is_colocated else _WAITS).items():
        waited_s = sum(measured.requests[f"phase_{name}_s"].fillna(0.0).to_numpy() for name in phases)
        growth = _slope(arrived_s, np.asarray(waited_s))
        grown_s = growth * (outcome.window_ps[1] - outcome.window_ps[0]) / PS_PER_S
        if growth > GROWTH_S_PER_S and grown_s > max(1.0, float(np.mean(waited_s))):
            pools = {replica.pool: None for replica in outcome.replicas if replica.role == role}
            keys = " or ".join(f"pools.{name}.replicas" for name in pools)
            yield Advice(
                f"load exceeds capacity: waiting for {role} grows by {seconds(growth)} every second",
                f"raise {keys}, or lower {_load_key(scenario)}",
            )


def _preempted(outcome: Outcome) -> Iterator[Advice]:
    """Pools in which more than one sequence in a hundred was put aside for want of KV memory."""
    pools: dict[str, list[ReplicaUse]] = {}
    for replica in outcome.replicas:
        pools.setdefault(replica.pool, []).append(replica)
    for name, members in pools.items():
        requests = sum(replica.requests for replica in members)
        preempted = sum(replica.preempted for replica in members)
        if preempted > PREEMPTED_FRACTION * requests:
            yield Advice(
                f"{name} ran out of KV memory: {counted(preempted, 'time')} a sequence was put aside and "
                f"{_brought_back(members)}, over {counted(requests, 'request')}",
                f"lower pools.{name}.max_sequences, raise pools.{name}.watermark, or add replicas",
            )


def _brought_back(members: Sequence[ReplicaUse]) -> str:
    """How sequences that were put aside came back."""
    preempted, swapped = (sum(getattr(one, key) for one in members) for key in ("preempted", "swapped"))
    if not swapped:
        return "computed anew"
    if swapped == preempted:
        return "copied to host memory and back"
    anew = counted(preempted - swapped, "time")
    return f"copied to host memory and back ({anew} computed anew)"


def _slope(x: np.ndarray, y: np.ndarray) -> float:
    spread = x - x.mean()
    square = float(np.dot(spread, spread))
    return float(np.dot(spread, y - y.mean())) / square if square else 0.0


def _load_key(scenario: Scenario) -> str:
    workload = scenario.workload
    if workload.arrivals is not None:
        return "workload.arrivals.rate"
    if workload.concurrency is not None:
        return "workload.concurrency"
    if workload.sessions is not None:
        return f"workload.sessions.{'users' if workload.sessions.users is not None else 'arrivals.rate'}"
    if workload.servegen is not None:
        return "workload.rate_scale"
    return "workload.rate" if workload.generator is not None else "workload.scale.copies"


def _unended(measured: Measured, outcome: Outcome) -> Iterator[Advice]:
    requests = len(measured.requests)
    unfinished = int((measured.requests["status"] == "unfinished").sum())
    if unfinished > UNFINISHED_FRACTION * requests:
        yield Advice(
            f"{whole(unfinished)} of {whole(requests)} requests did not finish; the table is of the others",
            "raise run.drain to wait longer for them; the SLO counts them as misses",
        )
    rejected = int((measured.requests["status"] == "rejected").sum())
    if rejected:
        reasons = ", ".join(
            f"{reason} ({whole(n)})" for reason, n in sorted(outcome.rejected_reasons.items())
        )
        yield Advice(
            f"{whole(rejected)} of {whole(requests)} requests were rejected"
            + (f": {reasons}" if reasons else ""),
            "see the rows of requests.parquet with status `rejected`",
        )


def _full_links(links: tuple[LinkUse, ...]) -> Iterator[Advice]:
    full = sorted(
        (link for link in links if link.peak_fraction > FULL_FRACTION),
        key=lambda x: (-x.peak_fraction, x.name),
    )
    if not full:
        return
    first, peak = f"{full[0].name} ({full[0].kind})", percent(full[0].peak_fraction)
    others = f", and {whole(len(full) - 1)} more came over {percent(FULL_FRACTION)}" if len(full) > 1 else ""
    yield Advice(
        f"link {first} reached {peak} of its capacity{others}: transfers wait for each other",
        "give the topology more bandwidth there, or place the pools differently (pools.NAME.place)",
    )


def _weak_quantiles(measured: Measured, outcome: Outcome, scenario: Scenario) -> Iterator[Advice]:
    count = measured.latencies["ttft"].count
    judged = [limit.statistic for limit in scenario.slo if limit.statistic.startswith("p")]
    names = sorted({*judged, "p99.9"}, key=lambda name: float(name[1:]))
    for name in names:
        beyond = samples_beyond(count, name)
        if 0 < beyond < SAMPLES_BEYOND:
            slowest = math.ceil(beyond)
            who = "the slowest request" if slowest == 1 else f"the {slowest} slowest requests"
            yield Advice(f"{name} rests on {who}", _longer(outcome, scenario, beyond))
            return


def _longer(outcome: Outcome, scenario: Scenario, beyond: float) -> str:
    if scenario.run.duration is None:
        return f"a firm value needs {SAMPLES_BEYOND}: use a longer workload, or more workload.scale.copies"
    wanted_ps = scenario.run.duration * SAMPLES_BEYOND / beyond
    minutes = math.ceil(wanted_ps / (60 * PS_PER_S))
    return f'use --set run.duration="{minutes} min" for a firm value'
