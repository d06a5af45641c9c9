"""Named checks of a scenario before it runs: what cannot work, and what looks doubtful, with remedies.

Mistakes come from joining the scenario with everything it names (sim.resolve). Doubts are the functions
below, one question each; they compare with simple bounds and never stop a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from sim.base.errors import Advice, ConfigError, ConfigErrors, listed
from sim.base.registry import Registry
from sim.base.streams import Streams
from sim.base.units import show
from sim.catalog import load_catalog
from sim.catalog.precision import HALVES
from sim.config.load import load_topology
from sim.config.scenario import Scenario
from sim.resolve import Resolved, resolve
from sim.serving.batching import Limits, Load, batching
from sim.serving.plan import PoolPlan, ServingPlan
from sim.tables.schema import PS_PER_S
from sim.timing.beyond import CARRIES_ON
from sim.timing.collective import collective
from sim.timing.measured import Measured
from sim.timing.operators import all_reduced_bytes
from sim.topology.cluster import build
from sim.workload.build import open_trace
from sim.workload.lengths import mean_tokens

Finding = ConfigError | Advice
"""A mistake, which stops a run, or a doubt, which does not."""

DECODE_BATCH = 64
"""Sequences of a decode batch by which collectives are compared."""

POOR_FIT = 0.05
"""Errors of fit above this are told."""

Doubt = tuple[str, str, str]
doubt: Registry[Callable[[Resolved], Iterator[Doubt]]] = Registry("check")


@doubt("room")
def unused_gpus(resolved: Resolved) -> Iterator[Doubt]:
    """GPUs of the topology that no replica uses."""
    used = sum(pool.replicas * pool.tp for pool in resolved.scenario.pools)
    idle = resolved.cluster.gpus - used
    if idle:
        yield (
            "pools",
            f"{idle} of {resolved.cluster.gpus} GPUs are not used",
            "add replicas, or use a smaller topology",
        )


@doubt("warm_caches")
def nothing_to_warm(resolved: Resolved) -> Iterator[Doubt]:
    """Caches that are to be warmed, but nothing comes before the window, or nothing is reused."""
    run = resolved.scenario.run
    if run.warm_caches is False:
        return
    if not run.start:
        yield "run.warm_caches", "nothing comes before the window", "set run.start, such as `start: 240 s`"
    elif not resolved.plan.reuse:
        yield (
            "run.warm_caches",
            "kv_pool.policy is none, so there is no cache",
            "remove it, or use policy: local",
        )


@doubt("slo")
def no_limits(resolved: Resolved) -> Iterator[Doubt]:
    """A scenario without an SLO has no verdict."""
    if not resolved.scenario.slo:
        yield (
            "slo",
            "there is no SLO, so there will be no verdict and no goodput",
            "write slo: [ttft p90 < 2 s]",
        )


@doubt("load")
def more_than_capacity(resolved: Resolved) -> Iterator[Doubt]:
    """A generated load above what the replicas can do, by arithmetic on mean lengths and no reuse."""
    form = resolved.scenario.workload
    if form.arrivals is None or form.input is None or form.output is None:
        return
    prompt, output = mean_tokens(form.input), mean_tokens(form.output)
    if prompt is None or output is None:
        return
    prefill, decode = resolved.plan.prefill, resolved.plan.decode
    if resolved.plan.colocated is not None:
        yield from _more_than_colocated(resolved.plan, form.arrivals.rate, round(prompt), output)
        return
    batch = max(1, prefill.max_batch_tokens // round(prompt))
    can_prefill = (
        len(prefill.seats) * batch / prefill.timing.prefill_ps([(round(prompt), 0)] * batch) * PS_PER_S
    )
    fits = max(1, min(decode.max_sequences, decode.kv_tokens // max(1, round(prompt + output))))
    step = _token_ps(resolved.plan, decode, fits, round(fits * (prompt + output / 2)))
    can_decode = len(decode.seats) * fits / step / output * PS_PER_S
    limits = ((prefill, can_prefill), (decode, can_decode)) if decode.seats else ((prefill, can_prefill),)
    for pool, can in limits:
        if form.arrivals.rate > can:
            yield (
                "workload.arrivals.rate",
                f"{show(form.arrivals.rate, 'frequency')} is more than the {len(pool.seats)} {pool.role} "
                f"replicas can do, about {show(can, 'frequency')}",
                f"lower the rate, or add {pool.role} replicas",
            )


@doubt("drafts")
def no_tokens_beside_drafts(resolved: Resolved) -> Iterator[Doubt]:
    """Drafts of a full batch that take the whole token budget of a step, so that prompts have to wait."""
    plan, pool = resolved.plan, resolved.plan.colocated
    if plan.speculation is None or pool is None or pool.batching is None:
        return
    limits = Limits(pool.max_batch_tokens, pool.batching.chunk_tokens, pool.max_sequences)
    drafted = pool.max_sequences * (plan.speculation.draft_tokens + 1)
    if batching[pool.batching.rule](Load(0, 0, 1), limits).mixes and drafted >= pool.max_batch_tokens:
        yield (
            "speculative.draft_tokens",
            f"{pool.max_sequences:,} sequences with {plan.speculation.draft_tokens} drafts each take "
            f"{drafted:,} tokens, and a step of {pool.name} has {pool.max_batch_tokens:,}: prompts wait",
            "draft fewer, lower max_sequences, or raise max_batch_tokens",
        )


@doubt("routing")
def nothing_to_be_near(resolved: Resolved) -> Iterator[Doubt]:
    """A prefill router that looks for what is near before there is anything to be near to."""
    form = resolved.scenario.router
    if form.policy == "topology_aware" and form.order == "prefill_first":
        yield (
            "router.policy",
            "topology_aware for prefill has nothing to be near to before the decode replica is chosen",
            "set router.order: decode_first, or use it as decode_policy",
        )


def _token_ps(plan: ServingPlan, pool: PoolPlan, batch: int, context: int) -> float:
    """How long a decode step takes for each token that it gives a sequence."""
    if plan.speculation is None:
        return pool.timing.decode_table(batch).step_ps(batch, context)
    return plan.speculation.table(pool.timing, batch).step_ps(batch, context) / plan.speculation.mean_tokens


def _more_than_colocated(plan: ServingPlan, rate: float, prompt: int, output: float) -> Iterator[Doubt]:
    """The same for colocated replicas alone: a request takes its prompt, and its share of decode steps."""
    pool = plan.colocated
    if pool is None or plan.prefill.seats:
        return
    fits = max(1, min(pool.max_sequences, pool.kv_tokens // max(1, round(prompt + output))))
    step = _token_ps(plan, pool, fits, round(fits * (prompt + output / 2)))
    can = len(pool.seats) * PS_PER_S / (pool.timing.prefill_ps([(prompt, 0)]) + output * step / fits)
    if rate > can:
        yield (
            "workload.arrivals.rate",
            f"{show(rate, 'frequency')} is more than the {len(pool.seats)} colocated replicas can do, about "
            f"{show(can, 'frequency')}",
            "lower the rate, or add colocated replicas",
        )


@doubt("lent")
def unused_pool(resolved: Resolved) -> Iterator[Doubt]:
    """Memory that nodes lend to a KV pool which no replica uses, since all are colocated."""
    plan = resolved.plan
    if plan.colocated is not None and not plan.prefill.seats and any(plan.kv.lent):
        yield (
            "kv_pool",
            "nodes lend memory to the KV pool, and colocated replicas reuse only what their own HBM holds",
            "add prefill and decode pools to use it",
        )


@doubt("sessions")
def no_sessions_to_stick_to(resolved: Resolved) -> Iterator[Doubt]:
    """A router that goes by sessions, and a workload that has none."""
    form = resolved.scenario.router
    for key in ("policy", "decode_policy"):
        if getattr(form, key) == "session_sticky" and resolved.scenario.workload.sessions is None:
            yield (
                f"router.{key}",
                "session_sticky is least_loaded here: the workload does not say which requests are a session",
                "use workload.sessions, or another policy",
            )


@doubt("collectives")
def unmeasured_collectives(resolved: Resolved) -> Iterator[Doubt]:
    """All-reduces whose times are scaled from other sizes, or cross the NICs."""
    for i, placement in enumerate(resolved.placements):
        together = placement.collective
        if together is None:
            continue
        path, gpus, link = f"pools.{i}.tp", together.gpus, together.link
        if not together.is_measured:
            table = together.table
            basis = f"{table.gpus} GPUs over {table.link.title}" if table else "NCCL's constants"
            yield (
                path,
                f"no all-reduce among {gpus} GPUs over {link.title} was measured: scaled from {basis}",
                measured_remedy(link.all_reduce),
            )
        if together.wire is not None:
            size = all_reduced_bytes(placement.shard, DECODE_BATCH)
            inside = collective(load_catalog(), link, gpus).curve()(size)
            yield (
                path,
                f"{placement.shard.tp} GPUs are in {together.wire.domains} NVLink domains: an all-reduce "
                f"for {DECODE_BATCH} tokens takes {show(round(together.curve()(size)), 'time')}, not "
                f"{show(round(inside), 'time')} as in one of them",
                f"tp {gpus} stays inside" if gpus > 1 else "tp 1 needs none",
            )


def measured_remedy(tables: Mapping[int, object]) -> str:
    """What to write instead of a number of GPUs that was not measured."""
    if not tables:
        return "compare it with another link before you rely on it"
    return f"tp {listed([str(gpus) for gpus in sorted(tables)], 'or')} was measured"


@doubt("timing")
def outside_the_table(resolved: Resolved) -> Iterator[Doubt]:
    """Batches that a measured table does not have, and tables that their own coefficients do not fit."""
    decode = resolved.plan.decode
    colocated = resolved.plan.colocated
    for pool in (resolved.plan.prefill, decode, *(() if colocated is None else (colocated,))):
        timing = pool.timing
        if not isinstance(timing, Measured) or not pool.seats:
            continue
        source, most = timing.beyond.source, timing.beyond.limits.batch
        if pool.role != "prefill" and pool.max_sequences > most:
            yield (
                "pools",
                f"{pool.name} may run {pool.max_sequences:,} sequences at once, and the measured table "
                f"{source} has steps of {most:,} at most: {CARRIES_ON}",
                f"max_sequences: {most}, or measure larger batches with `sim calibrate`",
            )
        error = timing.prefill_error if pool.role == "prefill" else timing.decode_error
        if error.worst > POOR_FIT:
            yield (
                "timing",
                f"{pool.role} times of the table {source} are fitted within {show(error.worst, 'fraction')} "
                f"at worst, {show(error.median, 'fraction')} in the median",
                "measure more points between those that lie far apart",
            )


@doubt("weights")
def another_checkpoint(resolved: Resolved) -> Iterator[Doubt]:
    """Weights in another precision than that of a checkpoint that was published quantised."""
    model, asked = resolved.placements[0].shard.model, resolved.scenario.model.weights
    if model.native not in (*HALVES, model.format(asked)):
        yield (
            "model.weights",
            f"{model.title} was published in {model.native.upper()}; {asked.upper()} is another checkpoint "
            "than its authors'",
            "write weights: native for the published one",
        )


@doubt("trace")
def odd_timestamps(resolved: Resolved) -> Iterator[Doubt]:
    """Timestamps of a trace that look like another unit, or come in coarse ticks."""
    scenario = resolved.scenario
    if scenario.workload.trace is not None:
        for advice in open_trace(scenario.workload, Streams(scenario.run.seed)).advice():
            yield "workload.trace", advice.text, advice.remedy


def check(scenario: Scenario) -> list[Finding]:
    """Check a scenario without running it: mistakes if there are any, else doubts."""
    try:
        resolved = resolve(scenario)
    except ConfigErrors as mistakes:
        return list(mistakes.errors)
    findings: list[Finding] = []
    for name in doubt.names():
        for path, problem, hint in doubt[name](resolved):
            where = scenario.document.where(path)
            place = where if where.startswith("--set") else f"{where}: {path}"
            findings.append(Advice(f"{place}: {problem}", hint))
    return findings


def check_topology(path: Path | str) -> list[Finding]:
    """Check a topology file: its form, its names, and whether it could be cabled."""
    try:
        build(load_topology(path), load_catalog())
    except ConfigErrors as mistakes:
        return list(mistakes.errors)
    return []
