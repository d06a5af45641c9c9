"""Judging a run against its SLO: each limit on the aggregate, and on each request for the goodput.

A limit such as `ttft p90 < 500 ms` is judged on that statistic of all measured requests, where a
request that never got that far counts as infinitely slow. Goodput counts the requests that stay
within every limit themselves, whatever statistic the limit names. A request's own gaps between
tokens are not kept, so an `itl` limit is held against its TPOT, the mean of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sim.config.slo import SloLimit
from sim.results.measured import Measured
from sim.tables.schema import PS_PER_S

if TYPE_CHECKING:
    import pandas as pd

_REQUEST_COLUMN = {"ttft": "ttft_s", "tpot": "tpot_s", "itl": "tpot_s", "e2e": "e2e_s"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """One limit and how the run stands to it; `is_met` is None where nothing was measured."""

    limit: str
    metric: str
    statistic: str
    limit_s: float
    value_s: float
    is_met: bool | None
    missing: int


def judge(limits: Iterable[SloLimit], measured: Measured) -> list[Verdict]:
    """The verdict on each limit, in the order in which they were written."""
    return [_verdict(limit, measured) for limit in limits]


def _verdict(limit: SloLimit, measured: Measured) -> Verdict:
    missing = measured.missing[limit.metric]
    value_s = measured.latencies[limit.metric].statistic(limit.statistic, missing)
    limit_s = limit.limit_ps / PS_PER_S
    is_met = None if math.isnan(value_s) else bool(_holds(np.float64(value_s), limit))
    return Verdict(limit.text, limit.metric, limit.statistic, limit_s, value_s, is_met, missing)


def good_requests(limits: Iterable[SloLimit], measured: Measured) -> NDArray[np.bool_]:
    """For each measured request, whether it finished within every limit."""
    requests: pd.DataFrame = measured.requests
    good: NDArray[np.bool_] = measured.is_finished.to_numpy().copy()
    for limit in limits:
        values_s = requests[_REQUEST_COLUMN[limit.metric]].to_numpy()
        # A finished request without a value, as TPOT of a single token, has nothing to break the limit with.
        good &= np.isnan(values_s) | _holds(values_s, limit)
    return good


def _holds(values_s: NDArray[np.float64] | np.float64, limit: SloLimit) -> NDArray[np.bool_] | np.bool_:
    limit_s = limit.limit_ps / PS_PER_S
    with np.errstate(invalid="ignore"):
        return values_s <= limit_s if limit.operator == "<=" else values_s < limit_s
