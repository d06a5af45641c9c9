"""What a scenario says of routing, as the serving model needs it."""

from __future__ import annotations

from sim.config.scenario import Scenario
from sim.serving.plan import RouterPlan
from sim.serving.rejection import smallest_ps
from sim.serving.routers import Policy


def router_plan(scenario: Scenario, policies: tuple[Policy, Policy]) -> RouterPlan:
    """The plan of the router; `policies` are those of prefill and decode."""
    form, rejects = scenario.router, scenario.router.reject == "slo"
    return RouterPlan(
        *policies,
        form.load_weight,
        smallest_ps(scenario.slo, "ttft") if rejects else None,
        smallest_ps(scenario.slo, "tpot", "itl") if rejects else None,
        decode_load_weight=form.decode_load_weight,
        stale_ps=form.stale,
        decode_first=form.order == "decode_first",
        seed=scenario.run.seed,
        colocated_tokens=form.colocated_tokens,
    )
