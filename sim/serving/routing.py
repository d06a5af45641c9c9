"""From a plan to what routes its requests: the policy, and the view that it is given of a pool."""

from __future__ import annotations

from random import Random

from sim.serving.loads import Loads
from sim.serving.places import EVERYWHERE, Places, Spot
from sim.serving.plan import PoolPlan, RouterPlan, ServingPlan
from sim.serving.routers import Chooser, Policy, View, router


def chooser_of(policy: Policy) -> Chooser:
    """A chooser of a policy: of ours by its name, of the user's as it is."""
    return router[policy]() if isinstance(policy, str) else policy()


def view_of(pool: PoolPlan, plan: ServingPlan, loads: Loads) -> View:
    """What a router sees of a pool. Each pool draws its own lots, all from the seed of the run."""
    view = View(len(pool.seats), loads, plan.block_tokens, weight_of(pool, plan.router))
    view.places = places_of(pool)
    view.dice = Random(f"{plan.router.seed} {pool.role}")
    return view


def weight_of(pool: PoolPlan, form: RouterPlan) -> float:
    """How much load counts for the router of a pool."""
    return form.decode_load_weight if pool.role == "decode" else form.load_weight


def places_of(pool: PoolPlan) -> Places:
    """Where the replicas of a pool are; nowhere in particular where the plan does not say."""
    if not pool.domains:
        return EVERYWHERE
    units = pool.units or (0,) * len(pool.domains)
    return Places(list(zip(pool.domains, units, strict=True)))


def spots_of(pool: PoolPlan) -> tuple[Spot, ...]:
    """The spot of each replica of a pool; empty where the plan does not say."""
    return places_of(pool).spots
