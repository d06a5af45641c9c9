"""What a run's GPUs draw: joules over the measured window, and tokens for each of them.

Model: a GPU draws its idle power all the time and, while its replica has work, the difference to what it
draws at work: energy = idle x window + (busy - idle) x busy time, with one busy power for prefill and one for
decode. GPUs of no replica are idle. Tokens are those of the cost (sim.results.cost).
Source: the catalogue's powers. On an H200 products of a batch of 128, busy half of the time, drew 521 W and a
quarter of the time 323 W where this line says 407 W and 264 W (between 120 W and 694 W): short bursts run at
clocks that a lasting load brings down. At full load the line holds by construction; others were not measured.
Units: joules, watts.
Ignores: CPUs, host memory, NICs, switches, fans, losses and cooling; how power varies with batch, precision,
clock and temperature; what it takes to load a model.
"""

from __future__ import annotations

from typing import Any

from sim.config.scenario import Cost
from sim.results.cost import finished_tokens, pools_of
from sim.results.measured import Measured
from sim.results.rates import Power, power_of
from sim.results.ratios import ratio
from sim.tables.schema import PS_PER_S
from sim.tables.uses import Outcome, ReplicaUse


def energy_figures(measured: Measured, outcome: Outcome, cost: Cost) -> dict[str, Any]:
    """Energy of the run and of each pool."""
    window_s = (outcome.window_ps[1] - outcome.window_ps[0]) / PS_PER_S
    powers = {gpu: power_of(gpu, cost) for gpu in outcome.gpu_kinds}
    known = {gpu: power for gpu, power in powers.items() if power is not None}
    absent = _reason(sorted(set(powers) - set(known)), outcome)
    pools = [_pool(name, members, known, window_s) for name, members in pools_of(outcome.replicas)]
    joules = None
    if not absent:
        unused = dict(outcome.gpu_kinds)
        for replica in outcome.replicas:
            unused[replica.gpu] -= replica.gpus
        idle_w = sum(known[gpu].idle_w * count for gpu, count in unused.items())
        joules = idle_w * window_s + sum(pool["joules"] for pool in pools)
    given, made = finished_tokens(measured)
    return {
        "absent": absent,
        "is_nameless": not powers,
        "is_bound": any(power.is_bound for power in known.values()),
        "sources": {gpu: list(power.sources) for gpu, power in known.items()},
        "joules": joules,
        "watts_per_gpu": None if joules is None else ratio(joules, window_s * outcome.gpus),
        "output_tokens_per_joule": _per_joule(made, joules),
        "tokens_per_joule": _per_joule(given + made, joules),
        "pools": pools,
    }


def _reason(unknown: list[str], outcome: Outcome) -> str | None:
    if not outcome.gpu_kinds:
        return "nobody said which GPUs these are"
    which = ", ".join(unknown)
    return f"no idle power is known for {which}: set cost.idle_power and cost.busy_power" if unknown else None


def _pool(name: str, members: list[ReplicaUse], known: dict[str, Power], window_s: float) -> dict[str, Any]:
    is_known = all(replica.gpu in known for replica in members)
    joules = sum(_joules(replica, known[replica.gpu], window_s) for replica in members) if is_known else None
    tokens, gpus = sum(replica.tokens for replica in members), sum(replica.gpus for replica in members)
    return {
        "name": name,
        "joules": joules,
        "watts_per_gpu": None if joules is None else ratio(joules, window_s * gpus),
        "tokens_per_joule": _per_joule(tokens, joules),
    }


def _joules(replica: ReplicaUse, power: Power, window_s: float) -> float:
    """Idle all the time, and more while it has work; a colocated replica as what its steps are."""
    decoding_ps = replica.decoding_ps if replica.role == "colocated" else 0
    above_w = power.busy_w(replica.role) - power.idle_w
    above_j = above_w * (replica.busy_ps - decoding_ps) + (power.decode_w - power.idle_w) * decoding_ps
    return replica.gpus * (power.idle_w * window_s + above_j / PS_PER_S)


def _per_joule(tokens: int, joules: float | None) -> float | None:
    return None if joules is None else ratio(tokens, joules)
