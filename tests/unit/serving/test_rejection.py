"""Early rejection: who is turned away and why, and that nobody gets lost."""

import numpy as np
import pytest
from models.play import plan, play, pool, seat
from models.smallpool import played
from models.wires import OwnWires

from sim.base.errors import ConfigErrors
from sim.serving.job import REJECTED
from sim.serving.plan import RouterPlan
from sim.serving.rejection import TBT_ABOVE_LIMIT, TTFT_ABOVE_LIMIT
from sim.timing.fixed import FixedTiming
from sim.workload.request import Request

TIMING = FixedTiming(prefill_base_ps=0, prefill_per_token_ps=10, decode_base_ps=100, decode_per_token_ps=1)


def outcome(router, requests):
    """Reasons of rejections, and the ids of those rejected, on one prefill and one decode replica."""
    serving_plan = plan(
        pool("prefill", [seat(0)], TIMING, 10**6, max_batch_tokens=1),
        pool("decode", [seat(1)], TIMING, 10**6, max_sequences=8),
        router=router,
    )
    result = play(serving_plan, requests, OwnWires(0))
    rows = result.requests
    return result.serving.rejected, [
        i for i, status in zip(rows["request_id"], rows["status"], strict=True) if status == REJECTED
    ]


def test_a_prompt_behind_too_long_a_queue_is_turned_away():
    """100 ps each: the third would wait 200 and take 100; the fourth comes later."""
    requests = [Request(0, 0, 10, 1), Request(1, 0, 10, 1), Request(2, 0, 10, 1), Request(3, 150, 10, 1)]
    for limit_ps, rejected in ((300, []), (299, [2]), (199, [1, 2]), (99, [0, 1, 2, 3])):
        reasons, who = outcome(RouterPlan("round_robin", "least_loaded", 1.0, limit_ps), requests)
        assert who == rejected
        assert reasons == ({TTFT_ABOVE_LIMIT: len(rejected)} if rejected else {})


def test_a_sequence_that_makes_steps_too_long_is_turned_away():
    """A step alone: 100 + 10 + 20 // 2 = 120; beside another 140. One token needs no step."""
    requests = [
        Request(0, 0, 10, 20),
        Request(1, 500, 10, 20),
        Request(2, 600, 10, 1),
        Request(3, 9000, 10, 20),
    ]
    for limit_ps, rejected in ((140, []), (139, [1]), (119, [0, 1, 3])):
        reasons, who = outcome(RouterPlan("least_loaded", "round_robin", 1.0, None, limit_ps), requests)
        assert who == rejected
        assert reasons == ({TBT_ABOVE_LIMIT: len(rejected)} if rejected else {})


@pytest.mark.parametrize("policy", ["conductor", "prefix_aware"])
def test_under_overload_nobody_is_lost_and_who_is_let_in_waits_less(tmp_path, policy):
    slo = "slo=[ttft p90 < 2 s, tpot p90 < 50 ms]"
    sets = (slo, f"router.policy={policy}", "workload.rate=200 req/s", "run.drain=100 s")
    waits = {}
    for reject in ("never", "slo"):
        serving = played(tmp_path, *sets, f"router.reject={reject}").serving
        rows = serving.log.sink.request_table()
        assert len(rows["request_id"]) == len(set(rows["request_id"].tolist())) == serving.arrived
        count = int((rows["status"] == REJECTED).sum())
        assert count == sum(serving.rejected.values())
        assert bool(count) == (reject == "slo")
        served = rows["first_token_ps"] >= 0
        waits[reject] = np.percentile((rows["first_token_ps"] - rows["arrived_ps"])[served], 90)
    assert waits["slo"] < 3e12 < waits["never"]


def test_rejecting_by_an_slo_without_limits_is_a_mistake(tmp_path):
    with pytest.raises(ConfigErrors, match="no limit on ttft"):
        played(tmp_path, "router.reject=slo", "slo=[e2e p90 < 9 s]")
