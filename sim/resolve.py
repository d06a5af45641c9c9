"""Join a scenario with catalogue, topology, timing and workload, or say at its lines what does not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from sim.base.errors import (
    ConfigError,
    ConfigErrors,
    UnknownNameError,
    UnsupportedError,
    ValueProblem,
)
from sim.catalog import Catalog, Engine, Model, load_catalog
from sim.catalog.huggingface.file import ENDING, model_of_file
from sim.clock import FOREVER
from sim.config.filekind import is_scenario
from sim.config.load import AT_THE_FILE, load_topology
from sim.config.paths import as_known
from sim.config.scenario import Scenario
from sim.config.yamlfile import nearby
from sim.kvpool.eviction import eviction
from sim.kvpool.pool import NVME
from sim.serving.batching import batching
from sim.serving.lending import kv_plan, lent_blocks
from sim.serving.order import order
from sim.serving.ownrouter import own_router
from sim.serving.plan import PoolPlan, Seat, ServingPlan
from sim.serving.pools import misfits, overfull_hosts, pool_plan, rule_of, speculation_of, token_ps
from sim.serving.rejection import smallest_ps
from sim.serving.routerplan import router_plan
from sim.serving.routers import Policy, router
from sim.serving.seating import NoRoom, lanes, misfit, seat
from sim.serving.span import domains_of, span
from sim.timing.build import timing_of
from sim.timing.memory import MemoryPlan, plan_memory
from sim.timing.placement import EXPECTED_TOKENS, Placement, Shard, Span, place
from sim.timing.timing import Timing
from sim.topology.cluster import Cluster, build
from sim.workload.lengths import mean_tokens
from sim.workload.problems import workload_problems

T = TypeVar("T")
_ROLES = ("prefill", "decode", "colocated")


@dataclass(frozen=True, slots=True)
class Resolved:
    """A scenario in which every name has become what it stands for."""

    scenario: Scenario
    cluster: Cluster
    plan: ServingPlan
    memory: tuple[MemoryPlan, ...]
    placements: tuple[Placement, ...]


@dataclass
class Mistakes:
    """Collects mistakes at the lines of a scenario, so that all are reported at once."""

    scenario: Scenario
    errors: list[ConfigError] = field(default_factory=list)

    def at(self, path: str, problem: str, hint: str) -> None:
        """Note a mistake at a dotted path."""
        self.errors.append(self.scenario.document.error(path, problem, hint))

    def named(self, path: str, shelf: Mapping[str, T], name: str) -> T | None:
        """Look up what a name stands for; an unknown name is a mistake."""
        try:
            return shelf[name]
        except UnknownNameError as unknown:
            self.at(path, unknown.problem, unknown.hint)
            return None

    def stop(self) -> None:
        """Raise what has been collected."""
        if self.errors:
            raise ConfigErrors(self.errors)


def resolve(scenario: Scenario) -> Resolved:
    """Join a scenario with everything it names. Raises ConfigErrors with all mistakes found."""
    catalog, mistakes = load_catalog(), Mistakes(scenario)
    model = _model(scenario, catalog, mistakes)
    engine = mistakes.named("engine", catalog.engines, scenario.engine)
    policies = _policy(scenario, "policy", mistakes), _policy(scenario, "decode_policy", mistakes)
    _check_names(scenario, mistakes)
    if engine is not None:
        _check_batching(scenario, engine, mistakes)
    cluster = _cluster(scenario, catalog, mistakes)
    mistakes.stop()
    assert model is not None
    assert engine is not None
    assert cluster is not None
    roles = [pool.role for pool in scenario.pools]
    if engine.first_token != "prefill" and "prefill" in roles and "decode" not in roles:
        problem = f"{engine.title} gives the first token from a decode pool, and there is none"
        mistakes.at("pools", problem, "write a pool with role: decode")
    seats = _seats(scenario, cluster, mistakes)
    placements = _placements(scenario, cluster, catalog, model, seats, mistakes)
    mistakes.stop()
    memory = [plan_memory(placement) for placement in placements]
    for i, budget in enumerate(memory):
        if not budget.fits:
            problem = f"the weights do not fit. {budget.breakdown}"
            mistakes.at(f"pools.{i}.tp", problem, "use a larger tp, or a smaller precision")
    main = placements[roles.index("prefill") if "prefill" in roles else 0]
    _check_pool(scenario, cluster, main, mistakes)
    mistakes.stop()
    timings = _timings(scenario, placements, mistakes)
    mistakes.stop()
    parts = zip(scenario.pools, seats, placements, memory, timings, strict=True)
    plans = [_placed(pool_plan(*of_pool), cluster) for of_pool in parts]
    plan = _serving_plan(scenario, cluster, {pool.role: pool for pool in plans}, main, engine, policies)
    return Resolved(scenario, cluster, plan, tuple(memory), tuple(placements))


def _model(scenario: Scenario, catalog: Catalog, mistakes: Mistakes) -> Model | None:
    """The model of the catalogue, or of the config.json that is named."""
    name = scenario.model.name
    if not name.endswith(ENDING):
        return mistakes.named("model.name", catalog.models, name)
    if not Path(name).is_file():
        mistakes.at("model.name", f"there is no file {name}", "see `sim list models` for known ones")
        return None
    try:
        return model_of_file(Path(name))
    except ConfigErrors as wrong:
        mistakes.errors.extend(wrong.errors)
        return None


def _policy(scenario: Scenario, key: str, mistakes: Mistakes) -> Policy:
    """A router policy: the name of a registered one, or what makes the user's own."""
    written: str = getattr(scenario.router, key)
    if ":" not in written:
        mistakes.named(f"router.{key}", router, written)  # type: ignore[arg-type]
        return written
    try:
        return own_router(written)
    except ValueProblem as wrong:
        mistakes.at(f"router.{key}", wrong.problem, wrong.hint or "")
        return written


def _check_names(scenario: Scenario, mistakes: Mistakes) -> None:
    """Check what needs no catalogue: roles, and the fields of the workload."""
    _check_roles(scenario, mistakes)
    for path, problem, hint in workload_problems(scenario.workload, scenario.run):
        mistakes.at(path, problem, hint)
    if scenario.router.reject == "slo" and smallest_ps(scenario.slo, "ttft", "tpot", "itl") is None:
        mistakes.at(
            "router.reject",
            "the slo has no limit on ttft, tpot or itl by which to reject",
            "write one, as in slo: [ttft p90 < 2 s]",
        )
    mistakes.named("kv_pool.eviction", eviction, scenario.kv_pool.eviction)  # type: ignore[arg-type]
    run = scenario.run
    if run.duration is not None and run.warmup >= run.duration:
        mistakes.at("run.warmup", "nothing is left to measure", "make warmup shorter than duration")
    if run.sample_every <= 0:
        mistakes.at("run.sample_every", "samples need an interval above 0 s", "write sample_every: 1 s")


def _check_roles(scenario: Scenario, mistakes: Mistakes) -> None:
    """Check that the pools can serve a request between them, and that what is said of some has its pools."""
    counts = {role: sum(pool.role == role for pool in scenario.pools) for role in _ROLES}
    is_colocated = bool(counts["colocated"])
    for role, count in counts.items():  # without a decode pool requests end with their first token
        is_needed = role == "prefill" and (bool(counts["decode"]) or not is_colocated)
        if count > 1 or (is_needed and not count):
            found = "there is none" if not count else f"there are {count}"
            kind = "exactly one" if is_needed else "at most one"
            need = "is needed" if is_needed else "is possible"
            hint = f"write one pool with role: {role}"
            hint += ", or one with role: colocated" if is_needed and not counts["decode"] else ""
            mistakes.at("pools", f"{kind} pool with role {role} {need}, {found}", hint)
    if scenario.router.colocated_tokens is not None and not (is_colocated and counts["prefill"]):
        problem = "prompts are dealt out only where there are colocated pools beside a prefill pool"
        mistakes.at("router.colocated_tokens", problem, "take it out, or add such pools")
    if not counts["prefill"] and is_colocated:
        if scenario.router.reject == "slo":
            problem = "colocated pools make no estimates to reject by"
            mistakes.at("router.reject", problem, "write reject: never, or use prefill and decode pools")
        if scenario.kv_pool.policy == "pooled":
            problem = "colocated pools reuse what their own HBM holds, and there is no prefill pool"
            mistakes.at("kv_pool.policy", problem, "write policy: local")


def _check_batching(scenario: Scenario, engine: Engine, mistakes: Mistakes) -> None:
    """Check how colocated pools fill their steps."""
    for i, pool in enumerate(scenario.pools):
        if pool.role != "colocated":
            continue
        path = f"pools.{i}.batching" if pool.batching is not None else f"pools.{i}"
        rule = mistakes.named(path, batching, rule_of(pool, engine))  # type: ignore[arg-type]
        if pool.order is not None:
            mistakes.named(f"pools.{i}.order", order, pool.order)  # type: ignore[arg-type]
        if rule is not None:
            for key, problem, hint in misfits(pool, engine, rule):
                mistakes.at(f"pools.{i}.{key}", problem, hint)


def _check_pool(scenario: Scenario, cluster: Cluster, placement: Placement, mistakes: Mistakes) -> None:
    """Check that a pool has something to it, and that the nodes it is to lose exist."""
    form = scenario.kv_pool
    block_bytes = placement.shard.kv_bytes_per_token_per_gpu * placement.shard.tp
    lent = lent_blocks(form, cluster, block_bytes * scenario.workload.block_tokens)
    is_wanted = form.dram is None  # who writes `dram: 0 GB` wants to see a pool of nothing
    if form.policy == "pooled" and not lent and is_wanted:
        mistakes.at(
            "kv_pool.policy",
            "no node lends anything to the pool",
            "add kv_pool to the topology, or say how much each node lends, such as dram: 1 TB",
        )
    lending = [cluster.types[node] for node in (lent[NVME] if lent else ())]
    without = next((node for node in lending if node.nvme_bytes_per_s is None), None)
    if without is not None:
        problem = f"{without.title} has no NVMe that is known"
        mistakes.at("kv_pool.nvme", problem, "lend host memory alone: nvme: null")
    for i, lost in enumerate(form.lost):
        if lent and not any(lost.node in nodes for nodes in lent):
            mistakes.at(f"kv_pool.lost.{i}.node", f"node {lost.node} lends nothing", "name one that does")
    for i, problem, hint in overfull_hosts(scenario.pools, cluster, placement.engine):
        key = "swap_space" if scenario.pools[i].swap_space is not None else "preemption"
        mistakes.at(f"pools.{i}.{key}", problem, hint)


def _is_topology_file(path: Path, mistakes: Mistakes) -> bool:
    """Whether there is a file that may be a topology; if not, that is a mistake of the scenario."""
    known = as_known(path)
    if is_scenario(path):
        hint = f"name a topology, such as the one that {path.name} names"
        mistakes.at("topology", f"{known} is a scenario, not a topology", hint)
    elif path.is_dir():
        mistakes.at("topology", f"{known} is a folder, not a file", "name a topology file in it")
    elif not path.is_file():
        hint = nearby(path, start=AT_THE_FILE)
        if not hint.endswith("?"):
            hint += "; `sim list topologies` shows those that come along"
        mistakes.at("topology", f"there is no file {known}", hint)
    else:
        return True
    return False


def _cluster(scenario: Scenario, catalog: Catalog, mistakes: Mistakes) -> Cluster | None:
    if not _is_topology_file(Path(scenario.topology), mistakes):
        return None
    try:
        form = load_topology(scenario.topology)
        return build(form, catalog)
    except ConfigErrors as wrong:
        mistakes.errors.extend(wrong.errors)
        return None


def _seats(scenario: Scenario, cluster: Cluster, mistakes: Mistakes) -> list[tuple[Seat, ...]]:
    wrong = [(i, misfit(cluster, pool)) for i, pool in enumerate(scenario.pools)]
    for i, found in wrong:
        if found is not None:
            key, problem, hint = found
            mistakes.at(f"pools.{i}.{key}", problem, hint)
    if any(found for _, found in wrong):
        return []
    seats = seat(cluster, scenario.pools)
    if isinstance(seats, NoRoom):
        pool = scenario.pools[seats.pool]
        mistakes.at(
            f"pools.{seats.pool}.replicas",
            f"{seats.wanted} replicas of {pool.tp} GPUs do not fit: there is room for {seats.seated}",
            "use fewer replicas, a smaller tp, or a larger topology",
        )
        return []
    domains = {domain for of_pool in seats for each in of_pool for domain in domains_of(cluster, each)}
    if cluster.fabric is None and len(domains) > 1:
        mistakes.at(
            "topology",
            "the replicas are on several nodes, and the topology has no fabric",
            "add a fabric to it",
        )
        return []
    return seats


def _placements(
    scenario: Scenario,
    cluster: Cluster,
    catalog: Catalog,
    model: Model,
    seats: Sequence[tuple[Seat, ...]],
    mistakes: Mistakes,
) -> list[Placement]:
    """Put a shard of each pool on a node; all nodes count as the first one."""
    width = lanes(cluster, scenario.pools)
    placements = []
    for i, pool in enumerate(scenario.pools):
        shard = Shard(model, scenario.model.weights, scenario.model.kv, pool.tp)
        reach = span(cluster, seats[i], width) if seats else Span(pool.tp)
        try:
            placement = place(catalog, shard, cluster.types[0].name, scenario.engine, reach)
            placements.append(replace(placement, context_tokens=_expected_tokens(scenario)))
        except UnsupportedError as unsupported:
            mistakes.at(f"pools.{i}.tp", unsupported.problem, f"nearest: {unsupported.nearest}")
    return placements


def _expected_tokens(scenario: Scenario) -> int:
    """How long sequences are halfway through their output, on average; a few thousand where nobody says."""
    form = scenario.workload
    prompt = mean_tokens(form.input) if form.input is not None else None
    output = mean_tokens(form.output) if form.output is not None else None
    return round(prompt + output / 2) if prompt is not None and output is not None else EXPECTED_TOKENS


def _timings(scenario: Scenario, placements: Sequence[Placement], mistakes: Mistakes) -> list[Timing]:
    """What each pool takes its times from, in the order of the pools; a mistake for all is told once."""
    timings, wrong = [], {}
    for i, (pool, placement) in enumerate(zip(scenario.pools, placements, strict=True)):
        source = pool.timing or scenario.timing
        key = "kind" if source.kind == "silicon" else "table"
        path = f"timing.{key}" if pool.timing is None else f"pools.{i}.timing.{key}"
        try:
            timings.append(timing_of(placement, source))
        except UnknownNameError as unknown:
            wrong[path] = [scenario.document.error(path, unknown.problem, unknown.hint)]
        except UnsupportedError as unsupported:
            hint = unsupported.nearest if key == "kind" else f"nearest: {unsupported.nearest}"
            wrong[path] = [scenario.document.error(path, unsupported.problem, hint)]
        except ConfigErrors as unreadable:
            wrong[path] = unreadable.errors
    for errors in wrong.values():
        mistakes.errors.extend(errors)
    return timings


def _placed(pool: PoolPlan, cluster: Cluster) -> PoolPlan:
    """A pool with the fabric unit, NVLink domain and node type that each replica begins in."""
    nodes = [seat.nodes[0] for seat in pool.seats]
    return replace(
        pool,
        units=tuple(cluster.unit_of(node) for node in nodes),
        domains=tuple(cluster.domain_of(node) for node in nodes),
        gpus=tuple(cluster.types[node].gpu for node in nodes),
    )


def _apart(plans: Mapping[str, PoolPlan]) -> tuple[PoolPlan, PoolPlan]:
    """The pools that only prefill and only decode, without seats where there is none."""
    some = next(iter(plans.values()))
    absent = {
        role: replace(some, name=role, role=role, seats=(), units=(), domains=(), gpus=(), batching=None)
        for role in ("prefill", "decode")
    }
    prefill = plans.get("prefill", absent["prefill"])
    if "decode" not in plans:  # nothing is sent
        prefill = replace(prefill, host=replace(prefill.host, send_ps=0))
    return prefill, plans.get("decode", absent["decode"])


def _serving_plan(
    scenario: Scenario,
    cluster: Cluster,
    plans: Mapping[str, PoolPlan],
    placement: Placement,
    engine: Engine,
    policies: tuple[Policy, Policy],
) -> ServingPlan:
    run, shard = scenario.run, placement.shard
    kv = kv_plan(scenario.kv_pool, cluster, shard, scenario.workload.block_tokens, engine)
    prefill, decode = _apart(plans)
    return ServingPlan(
        prefill=prefill,
        decode=decode,
        colocated=plans.get("colocated"),
        handoff_start_ps=engine.handoff_start_ps,
        handoff_token_ps=token_ps(placement, engine.staging_bytes_per_s),
        reserves_first=engine.handoff_order == "destination-first",
        router=router_plan(scenario, policies),
        reuse=scenario.kv_pool.policy != "none",
        kv_bytes_per_token=shard.model.kv_bytes_per_token(shard.kv),
        kv_heads=shard.model.kv_heads,
        block_tokens=scenario.workload.block_tokens,
        page_tokens=engine.page_tokens,
        first_token_by_prefill=engine.first_token == "prefill",
        measured_from_ps=run.warmup,
        measured_until_ps=FOREVER if run.duration is None else run.duration,
        kv_limits=shard.model.kv_limits(shard.kv),
        kv_state_bytes=shard.model.state_bytes_per_gpu(1),
        kv=replace(kv, stale_ps=max(kv.stale_ps, scenario.router.stale)),
        timeout_ps=scenario.workload.timeout,
        cancels=scenario.workload.cancel is not None,
        request_time_ps=engine.request_time_ps,
        speculation=speculation_of(scenario),
    )
