"""Early rejection: requests that are turned away when they arrive, because the SLO would not be met.

Model: the TTFT is estimated at the replica chosen, the TBT predicted at the decode replica that would be
chosen now; either above its limit in the SLO rejects the request. A limit on `itl` counts as one on the TBT;
of several limits on a metric the smallest counts, whatever its statistic.
Source: Qin et al., *Mooncake*, FAST 2025, section on overload-oriented scheduling: rejection by the load at
the moment of arrival.
Ignores: how the load of decode will have changed when the prompt is computed.
Units: picoseconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sim.config.slo import SloLimit
from sim.serving.plan import RouterPlan
from sim.workload.request import Request

if TYPE_CHECKING:
    from sim.serving.decode import DecodePool
    from sim.serving.decodeestimates import DecodeEstimates
    from sim.serving.prefill import PrefillPool

TTFT_ABOVE_LIMIT = "estimated TTFT above the SLO"
TBT_ABOVE_LIMIT = "predicted TBT above the SLO"


def smallest_ps(slo: Iterable[SloLimit], *metrics: str) -> int | None:
    """The smallest limit of an SLO on any of some metrics."""
    return min([limit.limit_ps for limit in slo if limit.metric in metrics], default=None)


class Rejection:
    """Says whether and why a request is turned away."""

    def __init__(self, plan: RouterPlan, prefill: PrefillPool, decode: DecodePool) -> None:
        self.ttft_limit_ps = plan.reject_ttft_ps
        self.tbt_limit_ps = plan.reject_tbt_ps
        self.prefill = prefill.estimates_from_now() if self.ttft_limit_ps is not None else None
        self.decode: DecodeEstimates | None = None
        if self.tbt_limit_ps is not None and decode.replicas:
            self.decode = decode.estimates_from_now()
        self.views = (prefill.view, decode.view)

    def reason(self, request: Request, replica: int, now_ps: int) -> str | None:
        """Why a request that would be computed by a replica is turned away; None where it is not."""
        prefill, decode = self.views
        if self.prefill is not None and self.ttft_limit_ps is not None:
            self.prefill.ask(request, prefill)
            if now_ps - request.arrived_ps + self.prefill.ttft_ps(replica) > self.ttft_limit_ps:
                return TTFT_ABOVE_LIMIT
        if self.decode is not None and self.tbt_limit_ps is not None and request.output_tokens > 1:
            decode.now_ps = now_ps
            self.decode.ask(request, decode)
            if self.decode.tbt_ps(self.decode.best()) > self.tbt_limit_ps:
                return TBT_ABOVE_LIMIT
        return None
