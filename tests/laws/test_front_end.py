"""What the front end takes: requests get in later by that, nothing else changes, and nobody is lost in it."""

from dataclasses import replace

import numpy as np
import pytest
from models.comparing import drawn, seeded
from models.play import play
from models.studies import SCENARIO, played
from models.wires import OwnWires


@pytest.mark.parametrize("seed", range(20))
def test_a_run_is_that_of_requests_that_come_later(seed):
    plan, requests, latency_ps = drawn(seed)
    plan = replace(plan, measured_from_ps=0, measured_until_ps=10**12)
    slow = replace(plan, request_time_ps=700)
    later = [request._replace(arrived_ps=request.arrived_ps + 700) for request in requests]
    with seeded(seed):
        fronted = play(slow, requests, OwnWires(latency_ps)).requests
    with seeded(seed):
        shifted = play(plan, later, OwnWires(latency_ps)).requests
    for name, column in fronted.items():
        wanted = shifted[name]
        if name == "arrived_ps":
            wanted = wanted - 700
        elif name == "phase_route_ps":
            wanted = wanted + 700
        assert np.array_equal(column, wanted), name


def test_users_wait_for_it_at_every_turn_and_the_end_of_the_window_loses_nobody(tmp_path):
    workload = "{concurrency: 3, input: {kind: fixed, tokens: 200}, output: {kind: fixed, tokens: 20}}"
    scenario = f"{SCENARIO[: SCENARIO.index('workload:')]}workload: {workload}\nrun: {{duration: 950 ms}}\n"
    rows = played(tmp_path, "engine=trtllm", scenario=scenario).requests
    assert (rows["status"] == "finished").all()
    assert rows["ttft_s"].min() >= 0.025
    assert (rows["arrived_at_s"] + 0.025 > 0.95).any()  # one was in the front end when the window ended


@pytest.mark.parametrize(("limit", "all_are_rejected"), [("24 ms", True), ("10 s", False)])
def test_early_rejection_counts_it_as_part_of_ttft(tmp_path, limit, all_are_rejected):
    sets = ("engine=trtllm", "router.reject=slo", f"slo=[ttft p90 < {limit}]")
    rows = played(tmp_path, *sets).requests
    assert (rows["status"] == "rejected").all() == all_are_rejected
