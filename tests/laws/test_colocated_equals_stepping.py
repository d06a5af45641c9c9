"""Colocated replicas, which jump over decode steps, against a model that takes them one by one.

Compared are all phases of each request, its first two tokens, every gap between tokens, the order in which
requests are done, steps, and how often sequences were put aside. Instants are coarse and memory is short, so
arrivals meet step boundaries and sequences give way all the time.
"""

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from models.mixing import StepMixed
from models.play import drawn_requests, plan, play, pool, seat
from models.rebuild import rows
from models.wires import OwnWires

from sim.serving.plan import BatchingPlan, HostTimes, RouterPlan, SwapPlan
from sim.serving.speculation import Speculation
from sim.tables.gaps import TokenGaps
from sim.timing.fixed import FixedTiming

RULES = ("prefill_first", "chunked", "mixed", "chunked_apart", "static")
ORDERS = ("fcfs", "shortest_prompt", "priority")


def drawn_plan(dice, rule, replicas=1, **changes):
    """A scenario of colocated replicas only, with little of everything."""
    timing = FixedTiming(
        prefill_base_ps=dice.choice((0, 1, 10, 100)),
        prefill_per_token_ps=dice.choice((1, 2, 10)),
        decode_base_ps=dice.choice((1, 5, 10, 60)),
        decode_per_sequence_ps=dice.choice((0, 0, 5)),
        decode_per_token_ps=dice.choice((0, 0, 1, 2)),
    )
    sequences = dice.choice((1, 2, 4, 16, 16))
    grows = dice.random() < 0.8
    batching = BatchingPlan(
        rule,
        dice.choice(ORDERS),
        chunk_tokens=dice.choice((1, 3, 8, 1000)),
        reserves_whole=not grows,
        spare_tokens=dice.choice((0, 0, 3, 9)) if grows else 0,
    )
    budget = (
        sequences + dice.choice((1, 4, 20, 1000))
        if rule in ("chunked", "mixed")
        else dice.choice((1, 8, 20, 1000))
    )
    nothing = pool("prefill", [], timing, 10**6)
    serve = replace(
        pool("serve", [seat(0) for _ in range(replicas)], timing, dice.choice((40, 40, 40, 48, 64, 1000))),
        role="colocated",
        max_batch_tokens=budget,
        max_sequences=sequences,
        first_length_ps=dice.choice((0, 0, 7)),
        host=dice.choice((HostTimes(), HostTimes(prefill_ps=3, step_ps=2, change_ps=4))),
        batching=batching,
    )
    return plan(
        nothing,
        replace(nothing, name="decode", role="decode"),
        colocated=serve,
        router=RouterPlan("round_robin", "round_robin", 1.0),
        page_tokens=dice.choice((1, 4, 8)),
        **changes,
    )


def drawn(seed, rule, count=30, replicas=1):
    dice = Random(seed)
    plan = drawn_plan(dice, rule, replicas)
    requests = [one._replace(priority=dice.randrange(3)) for one in drawn_requests(dice, count, 4)]
    return plan, requests


def counted_gaps(played):
    gaps = TokenGaps()
    gaps.add_segments(played.segments)
    gaps.add_requests(played.requests)
    counted = Counter()
    for length, count in zip(*(column.tolist() for column in gaps.counted()), strict=True):
        counted[length] += count
    return counted


def told(guest):
    """What a guest of the naive model should leave behind."""
    request, done = guest.request, guest.tokens[-1]
    decoding = done if guest.decoding is None else guest.decoding
    return {
        "request_id": request.id,
        "first_token_ps": guest.tokens[0],
        "second_token_ps": guest.tokens[1] if len(guest.tokens) > 1 else -1,
        "finished_ps": done,
        "phase_queue_ps": guest.began - request.arrived_ps,
        "phase_prefill_ps": guest.computed - guest.began - guest.aside_before,
        "phase_decode_queue_ps": decoding - guest.computed,
        "phase_decode_ps": done - decoding - guest.aside_after,
        "phase_preempted_ps": guest.aside_before + guest.aside_after,
    }


def compare(plan, requests, latency_ps=0):
    """Play both on one replica and compare them."""
    played = play(plan, requests, OwnWires(latency_ps))
    [replica] = played.serving.colocated.replicas
    naive = StepMixed(plan.colocated, plan.page_tokens, requests, latency_ps, plan.speculation)
    found = rows(played.requests)
    assert [row["request_id"] for row in found] == [guest.request.id for guest in naive.done]
    for row, guest in zip(found, naive.done, strict=True):
        expected = told(guest)
        assert {name: row[name] for name in expected} == expected
    expected_gaps = Counter()
    for guest in naive.done:
        came = list(dict.fromkeys(guest.tokens)) if plan.speculation is not None else guest.tokens
        expected_gaps.update(b - a for a, b in pairwise(came))
    assert counted_gaps(played) == expected_gaps
    assert replica.preemptions == naive.preemptions
    assert replica.steps == naive.decode_steps
    return played, naive


def with_swap(plan, dice):
    """The plan with host memory for those that give way, and more or less of it."""
    swap = SwapPlan(dice.choice((0, 2, 8, 100)), dice.choice((1, 4, 30)))
    serve = replace(
        plan.colocated, batching=replace(plan.colocated.batching, reserves_whole=False, swap=swap)
    )
    return replace(plan, colocated=serve)


@pytest.mark.parametrize("rule", RULES)
def test_the_same_where_sequences_wait_in_host_memory(rule):
    seen = Counter()
    for seed in range(120):
        dice = Random(seed)
        plan, requests = drawn(seed, rule)
        plan = with_swap(plan, dice)
        try:
            played, naive = compare(plan, requests, dice.choice((0, 5)))
        except Exception as wrong:
            wrong.add_note(f"seed {seed}")
            raise
        [replica] = played.serving.colocated.replicas
        assert replica.swapped == naive.swapped
        assert replica.host_pages == plan.colocated.batching.swap.pages
        assert (replica.memory.claimed, replica.pages.pages) == (0, 0)
        seen["swapped"] += naive.swapped > 0
        seen["computed anew"] += 0 < naive.swapped < naive.preemptions
    assert seen["swapped"] >= (6 if rule == "static" else 30)
    assert rule == "static" or seen["computed anew"] >= 5


@pytest.mark.parametrize("rule", RULES)
def test_the_same_where_drafts_are_verified(rule):
    """With one to three drafts, all, some or none of them right, in host memory and computed anew."""
    seen = Counter()
    for seed in range(150):
        dice = Random(seed)
        plan, requests = drawn(seed, rule)
        plan = with_swap(plan, dice) if dice.random() < 0.5 else plan
        acceptance = tuple(dice.choice((0.0, 0.3, 0.8, 1.0)) for _ in range(dice.randint(1, 3)))
        speculation = Speculation(acceptance, dice.choice((0.0, 0.1, 0.4)), seed=seed)
        if plan.colocated.max_batch_tokens < plan.colocated.max_sequences * (len(acceptance) + 1) + 1:
            wide = plan.colocated.max_sequences * (len(acceptance) + 1) + dice.choice((1, 10))
            plan = replace(plan, colocated=replace(plan.colocated, max_batch_tokens=wide))
        plan = replace(plan, speculation=speculation)
        try:
            played, naive = compare(plan, requests, dice.choice((0, 5)))
        except Exception as wrong:
            wrong.add_note(f"seed {seed}")
            raise
        [replica] = played.serving.colocated.replicas
        assert replica.tokens == sum(one.output_tokens for one in requests)
        assert (replica.memory.claimed, replica.pages.pages) == (0, 0)
        seen["put aside"] += naive.preemptions > 0
        seen["swapped"] += naive.swapped > 0
        seen["several at once"] += any(len(set(guest.tokens)) < len(guest.tokens) for guest in naive.done)
    assert seen["several at once"] >= 90
    assert seen["put aside"] >= (6 if rule == "static" else 40)
    assert seen["swapped"] >= (2 if rule == "static" else 15)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("first_seed", [0, 50, 100])
def test_every_token_comes_when_one_step_after_the_other_brings_it(rule, first_seed):
    for seed in range(first_seed, first_seed + 50):
        try:
            compare(*drawn(seed, rule))
        except Exception as wrong:
            wrong.add_note(f"seed {seed}")
            raise


def test_much_has_happened():
    """The comparison is worth something: each thing that may go wrong came up in many runs."""
    seen = Counter()
    for rule in RULES:
        for seed in range(60):
            plan, requests = drawn(seed, rule)
            played, naive = compare(plan, requests)
            guests = naive.done
            seen[rule, "put aside"] += naive.preemptions > 0
            seen[rule, "put aside before its prompt was computed"] += any(one.aside_before for one in guests)
            seen[rule, "many steps at once"] += any(played.segments["steps"] > 3)
            seen[rule, "memory full"] += naive.fullest == plan.colocated.kv_tokens // plan.page_tokens
            seen[rule, "waited"] += any(guest.began > guest.request.arrived_ps for guest in guests)
    for rule in RULES:
        least = 4 if rule == "static" else 20  # which lets few in at once
        assert seen[rule, "put aside"] >= least
        assert seen[rule, "memory full"] >= least
        assert seen[rule, "many steps at once"] >= 15
        assert seen[rule, "waited"] >= 30
    assert seen["chunked", "put aside before its prompt was computed"] >= 5


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("swaps", [False, True])
def test_nothing_is_lost_where_blocks_are_shared(rule, swaps):
    """Tokens, blocks and requests add up when several replicas reuse prompts and put sequences aside."""
    aside = hits = 0
    for seed in range(40):
        dice = Random(seed)
        plan = replace(drawn_plan(dice, rule, replicas=dice.choice((1, 2)), reuse=True), block_tokens=4)
        plan = replace(plan, router=RouterPlan("prefix_aware", "least_loaded", 1.0))
        plan = with_swap(plan, dice) if swaps else plan
        requests = drawn_requests(dice, 40, 4)
        played = play(plan, requests, OwnWires(0))
        pool = played.serving.colocated
        served = [one for one in requests if pool.holds(one, one.blocks)]
        assert sum(replica.requests for replica in pool.replicas) == len(served)
        assert sum(replica.tokens for replica in pool.replicas) == sum(one.output_tokens for one in served)
        for replica in pool.replicas:
            assert (replica.memory.claimed, replica.pages.pages) == (0, 0)
            assert replica.memory.free + replica.memory.cached == replica.memory.capacity
            assert (replica.waiting, replica.running, replica.under_way) == ([], 0, 0)
            assert not swaps or replica.host_pages == plan.colocated.batching.swap.pages
            aside += replica.preemptions
        assert played.serving.live == {}
        assert played.serving.dispatch.colocated == 0
        hits += int(played.requests["cached_tokens"].sum())
        computed = sum(replica.prompt_tokens for replica in pool.replicas)
        assert computed >= sum(one.input_tokens for one in served) - played.requests["cached_tokens"].sum()
        for row in rows(played.requests):
            if row["finished_ps"] >= 0:
                phases = [row[name] for name in row if name.startswith("phase_")]
                assert min(phases) >= 0
                assert sum(phases) == row["finished_ps"] - row["arrived_ps"]
    assert hits > 100
    assert aside > (5 if rule == "static" else 50)


@pytest.mark.parametrize("rule", RULES)
def test_nobody_starves(rule):
    """First come, first served: nobody is let in before who came earlier; the first is never put aside."""
    for seed in range(60):
        plan, requests = drawn(seed, rule)
        serve = replace(plan.colocated, batching=replace(plan.colocated.batching, order="fcfs"))
        played, naive = compare(replace(plan, colocated=serve), requests)
        first_let_in = list(dict.fromkeys(naive.let_in_order))
        assert first_let_in == sorted(first_let_in)
        assert [row["phase_preempted_ps"] for row in rows(played.requests) if not row["request_id"]] == [0]
        assert (played.requests["finished_ps"] >= 0).all()


@pytest.mark.parametrize("rule", RULES)
def test_who_leaves_takes_nothing_along(rule):
    """Users leave while they wait, are copied, lie in host memory or verify drafts: all is given back."""
    seen = Counter()
    for seed in range(60):
        dice = Random(seed)
        plan, requests = drawn(seed, rule, replicas=dice.choice((1, 2)))
        plan = replace(with_swap(plan, dice), timeout_ps=dice.choice((200, 600, 1500)))
        if dice.random() < 0.5:
            plan = replace(plan, speculation=Speculation((0.5, 0.9), 0.1, seed))
        played = play(plan, requests, OwnWires(dice.choice((0, 5))))
        for replica in played.serving.colocated.replicas:
            assert (replica.memory.claimed, replica.pages.pages) == (0, 0)
            assert (replica.waiting, replica.running, replica.under_way) == ([], 0, 0)
            assert replica.host_pages == plan.colocated.batching.swap.pages
            seen["swapped"] += replica.swapped
        assert played.serving.live == {}
        for row in rows(played.requests):
            phases = [row[name] for name in row if name.startswith("phase_")]
            assert min(phases) >= 0
            seen["left"] += row["finished_ps"] < 0
            seen["left while put aside"] += row["finished_ps"] < 0 and row["phase_preempted_ps"] > 0
            if row["finished_ps"] >= 0:
                assert sum(phases) == row["finished_ps"] - row["arrived_ps"]
    assert seen["left"] > 200
    assert rule == "static" or (seen["swapped"] > 15 and seen["left while put aside"] > 10)
