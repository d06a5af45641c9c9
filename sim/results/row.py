"""A run as one row of numbers, so that many runs make a tidy table.

Columns end in their unit. Of the latencies all statistics, of pools and tiers a column for each name, of
links the busiest and the kind that the slowest handoffs waited for most. What does not exist is None.
"""

from __future__ import annotations

from typing import Any

from sim.results.metrics import Figures
from sim.tables.metrics import LATENCIES, STATISTICS

COPIED: tuple[str, ...] = (
    "digest",
    "slo_met",
    "offered_per_s",
    "goodput_per_s",
    "goodput_fraction",
    "good_output_tokens_per_s",
    "output_tokens_per_s_per_gpu",
    "hit_fraction",
    "gpus",
    "window_s",
    "requests_measured",
    "requests_finished",
    "requests_rejected",
    "requests_unfinished",
    "interrupted",
    "cpu_s",
)
"""Figures that are numbers or words already."""


def row_of(figures: Figures) -> dict[str, Any]:
    """The row of a run."""
    return {
        **{name: figures[name] for name in COPIED},
        **{
            latency_column(metric, statistic): figures[f"{metric}_s"][statistic]
            for metric in LATENCIES
            for statistic in STATISTICS
        },
        **{f"phase_{name}_s": value for name, value in figures["phases_s"].items()},
        **{f"busy_{pool['name']}_fraction": pool["utilisation"] for pool in figures["pools"]},
        "slo_broken": ", ".join(entry["limit"] for entry in figures["slo"] if entry["is_met"] is not True),
        "rent_usd_per_h": _rent(figures),
        **_links(figures),
        **_pool(figures["kv_pool"]),
    }


def latency_column(metric: str, statistic: str) -> str:
    """The column of a latency: ttft_p90_s, e2e_p99_9_s."""
    return f"{metric}_{statistic.replace('.', '_')}_s"


def _rent(figures: Figures) -> float | None:
    """What all GPUs are rented for in an hour."""
    usd, window_s = figures["cost"]["usd"], figures["window_s"]
    return None if usd is None or not window_s else float(usd / window_s * 3600)


def _links(figures: Figures) -> dict[str, Any]:
    """The busiest link, the busiest interval of each kind, and what handoffs waited for."""
    busiest = figures["links"][0] if figures["links"] else {"name": None, "utilisation": None}
    transfers = figures["transfers"]
    slowest = transfers["slowest"]
    return {
        "busiest_link": busiest["name"],
        "busiest_link_fraction": busiest["utilisation"],
        "handoff_mean_s": transfers["mean_s"],
        "handoff_p99_s": transfers["p99_s"],
        "handoff_waited_s": transfers["waited_mean_s"],
        "handoff_waited_for": slowest["kinds"][0]["kind"] if slowest else None,
        **{f"peak_{kind['kind']}_fraction": kind["peak"] for kind in figures["link_kinds"]},
    }


def _pool(pool: dict[str, Any] | None) -> dict[str, Any]:
    """What the pool of KV blocks gave, and how large it is."""
    if pool is None:
        return {
            "pool_dram_bytes": 0,
            "pool_nvme_bytes": 0,
            "tokens_not_recomputed": None,
            "fetch_mean_s": None,
        }
    held = {tier["name"]: tier["capacity_blocks"] * pool["block_bytes"] for tier in pool["tiers"]}
    return {
        "pool_dram_bytes": held.get("dram", 0),
        "pool_nvme_bytes": held.get("nvme", 0),
        **{f"hit_{tier}_fraction": share for tier, share in pool["hit_fractions"].items()},
        "tokens_not_recomputed": pool["tokens_not_recomputed"],
        "remote_fraction": pool["remote_fraction"],
        "fetch_fraction": pool["fetches"]["fraction"],
        "fetch_mean_s": pool["fetches"]["mean_s"],
    }
