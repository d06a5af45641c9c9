"""The measured requests of a run, and the latency distributions that every figure rests on.

A request is measured when it arrived in the window, whatever became of it. Its latencies are in
seconds, NaN where they never came about; `missing` counts those, so that a limit can be judged as if
they were infinite. Percentiles of finished work alone would flatter an overloaded system.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sim.results.stats import Distribution, distribution
from sim.tables.gaps import TokenGaps
from sim.tables.schema import PHASES, PS_PER_S

if TYPE_CHECKING:
    import pandas as pd

COLUMNS: tuple[str, ...] = (
    "measured",
    "status",
    "arrived_at_s",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "transfer_link",
    "transfer_waited_s",
    "hbm_tokens",
    "dram_tokens",
    "nvme_tokens",
    "remote_tokens",
    "fetch_link",
    "fetch_waited_s",
    "fetch_hidden_s",
    "fetch_spared_s",
    "ttft_s",
    "tpot_s",
    "e2e_s",
    *(f"phase_{name}_s" for name in PHASES),
)
"""Columns of requests.parquet that the figures need."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Measured requests, one distribution for each latency, and how many samples it lacks."""

    requests: pd.DataFrame
    latencies: dict[str, Distribution]
    missing: dict[str, int]

    @property
    def is_finished(self) -> pd.Series[bool]:
        """For each request, whether it came to its end."""
        return self.requests["status"] == "finished"


def measure(requests: pd.DataFrame, gaps: TokenGaps) -> Measured:
    """Select the measured requests and order their latencies."""
    measured = requests[requests["measured"]]
    lengths_ps, counts = gaps.counted()
    itl = distribution(lengths_ps / PS_PER_S, counts)
    latencies = {
        "ttft": distribution(measured["ttft_s"].to_numpy()),
        "tpot": distribution(measured["tpot_s"].to_numpy()),
        "itl": itl,
        "e2e": distribution(measured["e2e_s"].to_numpy()),
    }
    never_ended = measured[measured["status"] != "finished"]
    has_later_tokens = never_ended["output_tokens"] > 1
    later_tokens = int(np.maximum(measured["output_tokens"].to_numpy() - 1, 0).sum())
    missing = {
        "ttft": int(never_ended["ttft_s"].isna().sum()),
        "tpot": int(has_later_tokens.sum()),
        "itl": max(later_tokens - itl.count, 0),
        "e2e": len(never_ended),
    }
    return Measured(measured, latencies, missing)
