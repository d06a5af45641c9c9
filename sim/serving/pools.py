"""What a pool of a scenario, placed and timed, is for serving: limits of the scenario, else of its engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sim.base.units import show
from sim.catalog import Engine
from sim.config.pool import Pool
from sim.config.scenario import Scenario
from sim.serving.batching import OF_ROLE, Limits, Load, Rule
from sim.serving.plan import BatchingPlan, Collectives, HostTimes, PoolPlan, Seat, SwapPlan
from sim.serving.speculation import Speculation
from sim.tables.schema import PS_PER_S
from sim.timing.memory import MemoryPlan
from sim.timing.operators import crossing_bytes_per_token
from sim.timing.placement import Placement
from sim.timing.timing import Timing
from sim.topology.cluster import Cluster

Mistake = tuple[str, str, str]
"""A key, what is wrong with it, and a remedy."""


def pool_plan(
    pool: Pool, seats: tuple[Seat, ...], placement: Placement, memory: MemoryPlan, timing: Timing
) -> PoolPlan:
    """Everything that serving needs to know of a pool but the fabric units of its replicas."""
    engine = placement.engine
    limits = limits_of(pool, engine)
    return PoolPlan(
        name=pool.name,
        role=pool.role,
        seats=seats,
        gpus_per_replica=pool.tp,
        timing=timing,
        kv_tokens=memory.kv_tokens,
        max_batch_tokens=limits.token_budget,
        max_sequences=limits.max_sequences,
        collectives=_collectives(placement, limits.max_sequences),
        first_length_ps=engine.first_length_time_ps,
        host=HostTimes(
            engine.prefill_gap_ps,
            engine.step_gap_ps,
            engine.change_gap_ps,
            engine.send_time_ps if pool.role == "prefill" else 0,
            token_ps(placement, engine.send_bytes_per_s),
        ),
        batching=_batching(pool, placement, memory, limits) if pool.role == "colocated" else None,
    )


def speculation_of(scenario: Scenario) -> Speculation | None:
    """The drafts that decode steps verify, if any."""
    form = scenario.speculative
    return None if form is None else Speculation(form.chances, form.draft_cost, scenario.run.seed)


def token_ps(placement: Placement, rate_bytes_per_s: float | None) -> float:
    """What the KV of a token takes on each GPU at a rate; nothing where there is none."""
    if rate_bytes_per_s is None:
        return 0.0
    return placement.shard.kv_bytes_per_token_per_gpu / rate_bytes_per_s * PS_PER_S


def rule_of(pool: Pool, engine: Engine) -> str:
    """The name of its batching rule."""
    return OF_ROLE.get(pool.role) or pool.batching or engine.batching


def limits_of(pool: Pool, engine: Engine) -> Limits:
    """The limits of its steps; what an engine takes of one prompt is no more than a step has."""
    budget = pool.max_batch_tokens or engine.token_budget
    chunk = pool.chunk_tokens or min(engine.chunk_tokens, budget)
    return Limits(budget, chunk, pool.max_sequences or engine.max_sequences)


def misfits(pool: Pool, engine: Engine, rule: Rule) -> Iterator[Mistake]:
    """What of a colocated pool cannot be together."""
    limits = limits_of(pool, engine)
    name = rule_of(pool, engine)
    allowance = rule(Load(0, 0, 1), limits)
    if name in OF_ROLE.values():
        role = next(role for role, its in OF_ROLE.items() if its == name)
        yield "batching", f"{name} is what pools with role {role} do", f"write role: {role}, or another rule"
    if pool.preemption == "swap" and (pool.reserve or engine.kv_reservation) == "whole":
        problem = "memory is reserved whole, so nobody gives way, and nothing is swapped"
        yield "preemption", problem, "write reserve: grow, or take it out"
    if does_swap(pool, engine) and not swap_bytes(pool, engine):
        problem = f"sequences are swapped to host memory, and {engine.title} does not say how much"
        yield "preemption", problem, "write swap_space, such as swap_space: 4 GiB"
    if pool.swap_space is not None and not does_swap(pool, engine):
        problem = f"nothing is swapped to host memory: {engine.title} computes sequences anew"
        yield "swap_space", problem, "write preemption: swap, or take it out"
    if pool.chunk_tokens is not None and not allowance.is_chunked:
        yield (
            "chunk_tokens",
            f"batching {name} computes prompts whole",
            "write batching: chunked, or take it out",
        )
    if pool.chunk_tokens is not None and pool.chunk_tokens > limits.token_budget:
        problem = (
            f"a chunk of {pool.chunk_tokens:,} tokens is more than the {limits.token_budget:,} of a step"
        )
        yield "chunk_tokens", problem, f"write {limits.token_budget} or less, or raise max_batch_tokens"
    if allowance.mixes and limits.token_budget <= limits.max_sequences:
        problem = (
            f"{limits.max_sequences:,} sequences that decode leave nothing for prompts of the "
            f"{limits.token_budget:,} tokens of a step"
        )
        key = "max_batch_tokens" if pool.max_batch_tokens is not None else "max_sequences"
        yield key, problem, "lower max_sequences, or raise max_batch_tokens"
    if pool.place.kind == "per-domain":
        problem = "per-domain P:D deals places out to prefill and decode pools"
        yield "place", problem, "write place: packed, spread or nodes"


def does_swap(pool: Pool, engine: Engine) -> bool:
    """Whether sequences that find no page wait in host memory."""
    return pool.role == "colocated" and (pool.preemption or engine.preemption) == "swap"


def swap_bytes(pool: Pool, engine: Engine) -> int:
    """Host memory for each GPU."""
    return engine.swap_space_bytes if pool.swap_space is None else pool.swap_space


def overfull_hosts(pools: Sequence[Pool], cluster: Cluster, engine: Engine) -> Iterator[tuple[int, str, str]]:
    """Pools whose sequences would take more host memory than a node has: number, problem and remedy."""
    for i, pool in enumerate(pools):
        each = swap_bytes(pool, engine) if does_swap(pool, engine) else 0
        for node in cluster.types:
            if each * node.gpus > node.dram_bytes:
                has, most = show(node.dram_bytes, "size"), node.dram_bytes // node.gpus // 10**9
                problem = f"{node.gpus} GPUs with {show(each, 'size')} each, and {node.title} has {has}"
                yield i, problem, f"write {most} GB or less"
                break


def _batching(pool: Pool, placement: Placement, memory: MemoryPlan, limits: Limits) -> BatchingPlan:
    engine = placement.engine
    grows = (pool.reserve or engine.kv_reservation) == "grow"
    watermark = engine.watermark_fraction if pool.watermark is None else pool.watermark
    return BatchingPlan(
        rule=rule_of(pool, engine),
        order=pool.order or "fcfs",
        chunk_tokens=limits.chunk_tokens,
        reserves_whole=not grows,
        spare_tokens=round(memory.kv_tokens * watermark) if grows else 0,
        swap=_swap(pool, placement),
    )


def _swap(pool: Pool, placement: Placement) -> SwapPlan | None:
    """Host memory of a replica, in pages of which each rank has its part."""
    engine = placement.engine
    if not does_swap(pool, engine):
        return None
    page_bytes = placement.shard.kv_bytes_per_token_per_gpu * engine.page_tokens
    return SwapPlan(swap_bytes(pool, engine) // page_bytes, page_bytes)


def _collectives(placement: Placement, max_sequences: int) -> Collectives | None:
    """What the collectives of a replica send over its NICs; None inside an NVLink domain."""
    token_bytes = crossing_bytes_per_token(placement)
    if not token_bytes:
        return None
    sizes = [placement.engine.padded_batch(batch) for batch in range(1, max_sequences + 1)]
    return Collectives(token_bytes, (0.0, *[size * token_bytes for size in sizes]))
