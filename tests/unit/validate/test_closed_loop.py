"""The closed loop takes steps in closed form; a model that takes them one by one sees the same."""

from itertools import product

import pytest
from models.closed_loop import played

from sim.timing.fixed import FixedTiming
from sim.validate.closedloop import ClosedLoop, Load, Replica, Rule

TIMING = FixedTiming(
    prefill_base_ps=1000,
    prefill_per_token_ps=7,
    decode_base_ps=300,
    decode_per_sequence_ps=11,
    decode_per_token_ps=2,
)
RULES = [Rule(budget, 5, *kinds) for budget, kinds in product((4, 16, 100), product((True, False), repeat=2))]


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("users", [1, 3, 9, 30])
@pytest.mark.parametrize("kv_tokens", [45, 1000])
def test_users_see_what_step_by_step_they_would(rule, users, kv_tokens):
    load = Load(users, 30, 20, 25, 0.1)
    seen = ClosedLoop(Replica(TIMING, rule, kv_tokens), load).run()
    ttft, tpot, end = played(TIMING, rule, kv_tokens, users, load.lengths())
    assert seen.ttft_ps == pytest.approx(ttft, rel=1e-12)
    assert seen.tpot_ps == pytest.approx(tpot, rel=1e-12)
    tokens = sum(output for _, output in load.lengths())
    assert seen.output_tokens_per_s == pytest.approx(tokens * 10**12 / end, rel=1e-12)


@pytest.mark.parametrize("rule", RULES[::2], ids=str)
@pytest.mark.parametrize("users", [1, 3, 9])
@pytest.mark.parametrize("request_time", [0, 250, 1700, 90_000])
@pytest.mark.parametrize("ahead", [True, False])
def test_requests_on_their_way_in_join_when_step_by_step_they_would(rule, users, request_time, ahead):
    load = Load(users, 30, 20, 25, 0.1)
    replica = Replica(TIMING, rule, 200, request_time_ps=request_time, prepares_ahead=ahead)
    seen = ClosedLoop(replica, load).run()
    ttft, tpot, end = played(TIMING, rule, 200, users, load.lengths(), request_time, ahead)
    assert seen.ttft_ps == pytest.approx(ttft, rel=1e-12)
    assert seen.tpot_ps == pytest.approx(tpot, rel=1e-12)
    tokens = sum(output for _, output in load.lengths())
    assert seen.output_tokens_per_s == pytest.approx(tokens * 10**12 / end, rel=1e-12)


def test_one_token_is_an_answer_without_gaps():
    seen = ClosedLoop(Replica(TIMING, RULES[0], 100), Load(1, 2, 10, 1)).run()
    assert seen.tpot_ps == 0.0


def test_lengths_lie_between_the_shortest_and_the_nominal_one():
    lengths = Load(1, 2000, 100, 50, 0.8).lengths()
    inputs, outputs = zip(*lengths, strict=True)
    assert (min(inputs), max(inputs), min(outputs), max(outputs)) == (80, 100, 40, 50)
    assert Load(1, 3, 100, 50).lengths() == [(100, 50)] * 3


def test_the_host_takes_its_time_before_each_step():
    rule = Rule(100, 5, True, True)
    bare, more = (
        ClosedLoop(Replica(TIMING, rule, 100, *gaps), Load(1, 2, 10, 5)).run() for gaps in ((), (50, 9))
    )
    assert (more.ttft_ps - bare.ttft_ps, more.tpot_ps - bare.tpot_ps) == (50, pytest.approx(9))
