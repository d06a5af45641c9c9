"""What the pool of KV blocks gave and cost: hits by tier, fetches and what they spared, bytes, copies.

Hits and fetches are those of measured requests that finished; bytes, copies and other events are counted
over the measured window, whoever caused them. A fetch goes on in part while its prompt is computed anyway
(hidden); what a batch waits for beyond is its phase `kv_fetch` (exposed), and those of its prompts that
fetched nothing wait with it. So what fetching saved is the computing spared, less what all requests were
exposed to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from sim.results.links import STEPS_OVER_TIME, blamed
from sim.results.measured import Measured
from sim.results.ratios import finite, ratio
from sim.tables.uses import LinkUse, Outcome, TierUse

HIT_TIERS: tuple[str, ...] = ("hbm", "dram", "nvme")
NO_FETCH: dict[str, Any] = dict.fromkeys(
    ("mean_s", "p99_s", "hidden_mean_s", "exposed_mean_s", "waited_mean_s", "spared_mean_s", "net_mean_s"),
)


def kv_pool_figures(measured: Measured, outcome: Outcome) -> dict[str, Any] | None:
    """All figures of the pool; None where no node lends anything."""
    use = outcome.kv_pool
    if use is None:
        return None
    finished = measured.requests[measured.is_finished]
    return {
        **_hits(finished),
        "fetches": fetches_of(finished, outcome.links),
        "tiers": [{**asdict(tier), "used_fraction": _used(tier)} for tier in use.tiers],
        "block_bytes": use.block_bytes,
        "read_over_bytes": dict(use.read_over),
        "written_over_bytes": dict(use.written_over),
        "counts": dict(use.counts),
        "hottest": [asdict(blocks) for blocks in use.hottest],
    }


def fetches_of(finished: pd.DataFrame, links: Sequence[LinkUse]) -> dict[str, Any]:
    """What fetches took, how much of it was hidden, what they spared, and which links held them back."""
    fetched = finished[finished["dram_tokens"] + finished["nvme_tokens"] > 0]
    if fetched.empty:
        return {"requests": 0, "fraction": ratio(0, len(finished)), **NO_FETCH, "held_back": None}
    took_s = (fetched["fetch_hidden_s"] + fetched["phase_kv_fetch_s"]).to_numpy()
    spared_s, exposed_s = float(fetched["fetch_spared_s"].sum()), float(finished["phase_kv_fetch_s"].sum())
    waited = fetched[fetched["fetch_waited_s"] > 0]
    return {
        "requests": len(fetched),
        "fraction": ratio(len(fetched), len(finished)),
        "mean_s": float(took_s.mean()),
        "p99_s": float(np.quantile(took_s, 0.99)),
        "hidden_mean_s": float(fetched["fetch_hidden_s"].mean()),
        "exposed_mean_s": float(fetched["phase_kv_fetch_s"].mean()),
        "waited_mean_s": finite(float(fetched["fetch_waited_s"].mean())),
        "spared_mean_s": spared_s / len(fetched),
        "net_mean_s": (spared_s - exposed_s) / len(fetched),
        "held_back": None if waited.empty else blamed(waited, links, "fetch"),
    }


def tiers_over_time(samples: pd.DataFrame) -> dict[str, list[float]]:
    """For each tier of the pool how full it was over the run, as the mean in equal steps."""
    of_tiers = samples[samples["kind"] == "kv_pool"]
    found = {}
    for name, readings in of_tiers.groupby("name", observed=True, sort=False):
        used = readings["value"].to_numpy()
        steps = np.array_split(used, min(STEPS_OVER_TIME, len(used)))
        found[str(name)] = [float(step.mean()) for step in steps]
    return found


def _hits(finished: pd.DataFrame) -> dict[str, Any]:
    """Tokens of prompts that were not computed again, by where they were found."""
    prompt = int(finished["input_tokens"].sum())
    tokens = {tier: int(finished[f"{tier}_tokens"].sum()) for tier in HIT_TIERS}
    remote = int(finished["remote_tokens"].sum())
    return {
        "hit_tokens": tokens,
        "hit_fractions": {tier: ratio(count, prompt) for tier, count in tokens.items()},
        "tokens_not_recomputed": sum(tokens.values()),
        "remote_tokens": remote,
        "remote_fraction": ratio(remote, sum(tokens.values())),
    }


def _used(tier: TierUse) -> float | None:
    return ratio(tier.cached_blocks, tier.capacity_blocks)
