"""What a run costs: USD for all GPUs of the cluster over the measured window, and for a million tokens.

Model: every GPU is paid for while the window lasts, busy or not, used by a replica or not: hours x price. A
million output tokens costs that over the output tokens of measured requests that finished (the tokens of
`output_tokens_per_s_per_gpu`), a million tokens that over prompt and output tokens of these. A pool's cost is
that of its GPUs, over the tokens that it worked on in the window: computed prompt tokens, or generated ones.
Where a price is not known the figures are None, with the reason; no price is ever taken to be 0.
Units: USD, hours, tokens.
Ignores: electricity (it is in the rent), storage, network, staff, and what other time than the window costs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sim.config.scenario import Cost
from sim.results.measured import Measured
from sim.results.rates import price_of
from sim.results.ratios import ratio
from sim.tables.schema import PS_PER_S
from sim.tables.uses import Outcome, ReplicaUse

PS_PER_H = 3600 * PS_PER_S
MILLION = 1_000_000


def cost_figures(measured: Measured, outcome: Outcome, cost: Cost) -> dict[str, Any]:
    """Cost of the run and of each pool."""
    hours = (outcome.window_ps[1] - outcome.window_ps[0]) / PS_PER_H
    prices = {gpu: price_of(gpu, cost) for gpu in outcome.gpu_kinds}
    unknown = sorted(gpu for gpu, price in prices.items() if price is None)
    known = {gpu: price[0] for gpu, price in prices.items() if price is not None}
    absent = _reason(unknown, outcome)
    usd = None if absent else hours * sum(known[gpu] * n for gpu, n in outcome.gpu_kinds.items())
    given, made = finished_tokens(measured)
    return {
        "absent": absent,
        "is_nameless": not outcome.gpu_kinds,
        "usd_per_h_of_gpu": known,
        "sources": {gpu: price[1] for gpu, price in prices.items() if price is not None},
        "usd": usd,
        "usd_per_million_output_tokens": per_million(usd, made),
        "usd_per_million_tokens": per_million(usd, given + made),
        "pools": [_pool(name, members, known, hours) for name, members in pools_of(outcome.replicas)],
    }


def _reason(unknown: list[str], outcome: Outcome) -> str | None:
    if not outcome.gpu_kinds:
        return "nobody said which GPUs these are"
    return f"no price is known for {', '.join(unknown)}: set cost.gpu_price" if unknown else None


def _pool(name: str, members: list[ReplicaUse], known: dict[str, float], hours: float) -> dict[str, Any]:
    is_known = all(replica.gpu in known for replica in members)
    usd = hours * sum(known[replica.gpu] * replica.gpus for replica in members) if is_known else None
    tokens = sum(replica.tokens for replica in members)
    return {"name": name, "usd": usd, "usd_per_million_tokens": per_million(usd, tokens)}


def pools_of(replicas: Iterable[ReplicaUse]) -> list[tuple[str, list[ReplicaUse]]]:
    """The replicas of each pool."""
    pools: dict[str, list[ReplicaUse]] = {}
    for replica in replicas:
        pools.setdefault(replica.pool, []).append(replica)
    return list(pools.items())


def finished_tokens(measured: Measured) -> tuple[int, int]:
    """Prompt and output tokens of measured requests that finished."""
    finished = measured.requests[measured.is_finished]
    return int(finished["input_tokens"].sum()), int(finished["output_tokens"].sum())


def per_million(usd: float | None, tokens: int) -> float | None:
    """USD for a million tokens; None where there are none."""
    return None if usd is None else ratio(usd * MILLION, tokens)
