"""Public columns from recorded ones: the one place where picoseconds become what people read.

Recorded are integers (sim.tables.schema); published are seconds, NaN where there is nothing yet.
Ignores: which replica worked during a retry, which is not recorded.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.tables.recorder import Integers
from sim.tables.schema import NOT_YET, PHASES, PS_PER_S, STATUSES

Floats = NDArray[np.float64]
FINISHED = STATUSES.index("finished")

PUBLIC_COLUMNS: tuple[str, ...] = (
    "request_id",
    "measured",
    "arrived_at_s",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "ttft_s",
    "tpot_s",
    "e2e_s",
    "finished_at_s",
    "prefill_replica",
    "decode_replica",
    "transfer_link",
    "transfer_waited_s",
    "transfer_hidden_s",
    "hbm_tokens",
    "dram_tokens",
    "nvme_tokens",
    "remote_tokens",
    "fetch_link",
    "fetch_waited_s",
    "fetch_hidden_s",
    "fetch_spared_s",
    "status",
    *(f"phase_{name}_s" for name in PHASES),
    "arrived_at_ps",
    "e2e_ps",
    "first_gap_s",
)
"""Columns of requests.parquet before `block_ids`; by the `_ps` ones a run can be replayed exactly."""

SPAN_COLUMNS: tuple[str, ...] = ("request_id", "phase", "started_at_ps", "duration_ps", "replica")

_ASIDE = ("transfer_waited", "transfer_hidden", "fetch_waited", "fetch_hidden", "fetch_spared")
_PREFILL_PHASES = frozenset({"queue", "kv_fetch", "prefill"})
_DECODE_PHASES = frozenset({"reserve", "transfer", "decode_queue", "decode", "preempted"})


def public_requests(columns: dict[str, Integers]) -> dict[str, NDArray[Any]]:
    """Recorded requests as PUBLIC_COLUMNS; `status` stays an index of STATUSES."""
    arrived_ps, output_tokens = columns["arrived_ps"], columns["output_tokens"]
    has_finished = columns["status"] == FINISHED
    finished_ps = np.where(has_finished, columns["finished_ps"], NOT_YET)
    first_ps, second_ps = columns["first_token_ps"], columns["second_token_ps"]
    after_first_s = seconds_between(first_ps, finished_ps)
    later_tokens = np.where(output_tokens > 1, output_tokens - 1, np.nan)
    public: dict[str, NDArray[Any]] = {
        "request_id": columns["request_id"],
        "measured": columns["measured"].astype(np.bool_),
        "arrived_at_s": arrived_ps / PS_PER_S,
        "input_tokens": columns["input_tokens"],
        "output_tokens": output_tokens,
        "cached_tokens": columns["cached_tokens"],
        "ttft_s": seconds_between(arrived_ps, first_ps),
        "tpot_s": after_first_s / later_tokens,
        "e2e_s": seconds_between(arrived_ps, finished_ps),
        "finished_at_s": _seconds(finished_ps),
        "prefill_replica": columns["prefill_replica"],
        "decode_replica": columns["decode_replica"],
        "transfer_link": columns["transfer_link"],
        **{name: columns[name] for name in ("hbm_tokens", "dram_tokens", "nvme_tokens", "remote_tokens")},
        "fetch_link": columns["fetch_link"],
        **{f"{name}_s": _seconds(columns[f"{name}_ps"]) for name in _ASIDE},
        "status": columns["status"],
        **{f"phase_{name}_s": _seconds(columns[f"phase_{name}_ps"]) for name in PHASES},
        "arrived_at_ps": arrived_ps,
        "e2e_ps": np.where(has_finished, finished_ps - arrived_ps, NOT_YET),
        "first_gap_s": seconds_between(first_ps, second_ps),
    }
    return {name: public[name] for name in PUBLIC_COLUMNS}


def spans(columns: dict[str, Integers]) -> dict[str, Integers]:
    """One row for each phase that took time, laid one after the other from the arrival.

    `phase` is an index of PHASES. Of a request that did not finish, its phases until the end are kept.
    """
    durations = np.stack([np.maximum(columns[f"phase_{name}_ps"], 0) for name in PHASES], axis=1)
    starts = columns["arrived_ps"][:, None] + np.cumsum(durations, axis=1) - durations
    request, phase = np.nonzero(durations)
    replicas = np.stack([_replica_of(name, columns) for name in PHASES], axis=1)
    return {
        "request_id": columns["request_id"][request],
        "phase": phase.astype(np.int64),
        "started_at_ps": starts[request, phase],
        "duration_ps": durations[request, phase],
        "replica": replicas[request, phase],
    }


def seconds_between(from_ps: Integers, to_ps: Integers) -> Floats:
    """Seconds from one instant to a later one, NaN where either has not come."""
    is_known = (from_ps >= 0) & (to_ps >= 0)
    return np.where(is_known, (to_ps - from_ps) / PS_PER_S, np.nan)


def _seconds(ps: Integers) -> Floats:
    return np.where(ps >= 0, ps / PS_PER_S, np.nan)


def _replica_of(phase: str, columns: dict[str, Integers]) -> Integers:
    if phase in _PREFILL_PHASES:
        return columns["prefill_replica"]
    if phase in _DECODE_PHASES:
        return columns["decode_replica"]
    return np.full_like(columns["request_id"], NOT_YET)
