"""Routers in the engine, whose loads change while it runs, against routers that look at everything.

Every policy for both pools, in both orders, with views that are late and replicas that are near or far.
"""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from models.comparing import compare, drawn, seeded
from models.play import play
from models.wires import OwnWires

from sim.serving.plan import RouterPlan

POLICIES = (
    "round_robin",
    "least_loaded",
    "power_of_two",
    "session_sticky",
    "topology_aware",
    "prefix_aware",
    "prefix_score",
)
WEIGHTS = (0.0, 0.5, 1.0, 2.0)


def routed(seed):
    """A drawn plan, routed in some way, and its requests, of which some are turns of sessions."""
    plan, requests, latency_ps = drawn(seed)
    dice = Random(f"routing {seed}")
    router = RouterPlan(
        dice.choice(POLICIES),
        dice.choice(POLICIES),
        dice.choice(WEIGHTS),
        decode_load_weight=dice.choice(WEIGHTS),
        stale_ps=dice.choice((0, 0, 10, 150)),
        decode_first=dice.random() < 0.5,
        seed=seed,
    )
    pools = {}
    for role in ("prefill", "decode"):
        of = getattr(plan, role)
        spots = [(domain, domain // 2) for domain in (dice.randrange(4) for _ in of.seats)]
        domains, units = zip(*spots, strict=True)
        pools[role] = replace(of, domains=domains, units=units)
    requests = [request._replace(session=dice.choice((-1, 0, 1, 2))) for request in requests]
    return replace(plan, router=router, **pools), requests, latency_ps


@pytest.mark.parametrize("first_seed", range(0, 300, 50))
def test_everybody_is_sent_where_a_look_at_all_would_send_them(first_seed):
    for seed in range(first_seed, first_seed + 50):
        plan, requests, latency_ps = routed(seed)
        with seeded(seed):
            compare(plan, requests, OwnWires(latency_ps), OwnWires(latency_ps))


def test_the_drawn_routers_differ_in_what_they_choose():
    """Each policy sends somebody elsewhere than the least loaded would."""
    differ = Counter()
    for seed in range(25):
        plan, requests, latency_ps = routed(seed)
        sent = {}
        for policy in POLICIES:
            router = replace(plan.router, policy=policy)
            played = play(replace(plan, router=router), requests, OwnWires(latency_ps))
            sent[policy] = played.requests["prefill_replica"].tolist()
        differ.update(policy for policy in POLICIES if sent[policy] != sent["least_loaded"])
    assert differ["least_loaded"] == 0
    assert min(differ[policy] for policy in POLICIES if policy != "least_loaded") > 2, differ
