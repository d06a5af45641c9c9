"""The engine, which jumps over decode steps, against a model that takes them one by one.

Compared is everything that can be seen of a request: where it went, each phase, every token's time, and the
order in which requests are done. Instants are coarse, so arrivals, flow ends and step boundaries coincide.
"""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from models.comparing import compare, drawn, seeded
from models.play import drawn_plan, drawn_requests
from models.wires import OwnWires, SharedWires

from sim.serving.speculation import Speculation
from sim.tables.gaps import TokenGaps


@pytest.mark.parametrize("first_seed", range(0, 400, 50))
def test_every_token_comes_when_one_step_after_the_other_brings_it(first_seed):
    for seed in range(first_seed, first_seed + 50):
        plan, requests, latency_ps = drawn(seed)
        with seeded(seed):
            compare(plan, requests, OwnWires(latency_ps), OwnWires(latency_ps))


@pytest.mark.parametrize("first_seed", range(0, 200, 50))
def test_every_token_comes_where_drafts_are_verified(first_seed):
    several = 0
    for seed in range(first_seed, first_seed + 50):
        plan, requests, latency_ps = drawn(seed)
        dice = Random(seed)
        acceptance = tuple(dice.choice((0.0, 0.3, 0.8, 1.0)) for _ in range(dice.randint(1, 3)))
        plan = replace(plan, speculation=Speculation(acceptance, dice.choice((0.0, 0.1, 0.4)), seed))
        if seed % 3 == 0:
            plan = replace(plan, timeout_ps=dice.choice((100, 400)))
        with seeded(seed):
            played, naive = compare(plan, requests, OwnWires(latency_ps), OwnWires(latency_ps))
        for replica in played.serving.decode.replicas:
            assert replica.free_pages == played.serving.decode.capacity_pages
            assert replica.tokens >= replica.places or not replica.requests
        several += any(len(set(story.tokens)) < len(story.tokens) for story in naive.stories.values())
    assert several >= 30


def drawn_on_links(dice, ranks, groups, kv_heads, queue_pairs=1, is_pooled=False):
    """A plan and requests, and twice the wires between few nodes; where pools overlap, bytes stay inside."""
    prefills, decodes = dice.randint(1, 3), dice.randint(1, 3)
    nodes = prefills + decodes - dice.randint(0, 1)
    places = range(prefills), range(nodes - decodes, nodes)
    plan = drawn_plan(dice, places, ranks, groups, kv_heads, kv_grain_bytes=max(kv_heads, *ranks))
    plan = replace(plan, kv_bytes_per_token=plan.kv_bytes_per_token * queue_pairs)
    requests = drawn_requests(dice, 25, plan.block_tokens)
    wires = [SharedWires(nodes, groups, 3, 1471 / 1024, queue_pairs, is_pooled) for _ in "12"]
    return plan, requests, *wires


@pytest.mark.parametrize("first_seed", range(0, 60, 20))
def test_every_token_where_transfers_share_links(first_seed):
    for seed in range(first_seed, first_seed + 20):
        dice = Random(seed)
        groups = dice.randint(1, 2)
        with seeded(seed):
            compare(*drawn_on_links(dice, (groups, groups), groups, kv_heads=groups))


@pytest.mark.parametrize("first_seed", range(0, 60, 20))
def test_every_token_where_transfers_are_dealt_out_anew(first_seed):
    """Tensor parallelism differs on the two sides, ranks share ports, and queue pairs go their own ways."""
    for seed in range(first_seed, first_seed + 20):
        dice = Random(seed)
        ranks = dice.choice(((4, 2), (2, 4), (4, 1), (1, 4), (2, 2)))
        kv_heads, queue_pairs = dice.choice((1, 2, 4, 8)), dice.choice((1, 2, 3))
        with seeded(seed):
            compare(*drawn_on_links(dice, ranks, dice.choice((1, 2)), kv_heads, queue_pairs))


@pytest.mark.parametrize("first_seed", range(0, 60, 20))
def test_every_token_where_queue_pairs_take_from_what_is_left(first_seed):
    for seed in range(first_seed, first_seed + 20):
        dice = Random(seed)
        ranks = dice.choice(((4, 2), (2, 4), (1, 4), (2, 2)))
        kv_heads, queue_pairs = dice.choice((1, 4, 8)), dice.choice((2, 3))
        with seeded(seed):
            compare(*drawn_on_links(dice, ranks, dice.choice((1, 2)), kv_heads, queue_pairs, is_pooled=True))


def test_the_drawn_scenarios_have_what_is_hard():
    """Ties, full batches, memory too short on both sides, rejections, reuse, segments cut short."""
    seen = Counter()
    for seed in range(100):
        plan, requests, latency_ps = drawn(seed)
        played, naive = compare(plan, requests, OwnWires(latency_ps), OwnWires(latency_ps))
        stories = naive.stories.values()
        boundaries = {(story.decode_replica, at) for story in stories for at in story.tokens[1:]}
        seen["arrival on a boundary"] += any(
            (story.decode_replica, story.received) in boundaries for story in stories
        )
        seen["arrivals at once"] += len({request.arrived_ps for request in requests}) < len(requests)
        seen["full batch"] += plan.decode.max_sequences in played.segments["batch"]
        seen["waits for decode memory"] += any(played.requests["phase_reserve_ps"] > 0)
        seen["waits for the batch"] += any(played.requests["phase_decode_queue_ps"] > 60)
        seen["rejected"] += bool(played.serving.rejected)
        seen["reused"] += any(played.requests["cached_tokens"] > 0)
        seen["one token, by prefill"] += plan.first_token_by_prefill and any(
            story.decode_replica is None and story.finished for story in stories
        )
        seen["many steps at once"] += any(played.segments["steps"] > 5)
        seen["growing steps"] += any(played.segments["step_growth_ps"] > 0)
        seen["equal steps"] += any(played.segments["step_growth_ps"] == 0)
        seen["prompts batched"] += len(set(zip(*_batches(played), strict=True))) < len(naive.order)
        seen["prefill memory stops admission"] += _stopped_by_memory(plan, stories)
    assert len(seen) == 13
    assert min(seen.values()) >= 10, seen


def test_gaps_between_tokens_are_those_of_the_steps():
    """The gaps counted from segments are, one for one, those between the tokens of measured requests."""
    for seed in range(40):
        plan, requests, latency_ps = drawn(seed)
        played, naive = compare(plan, requests, OwnWires(latency_ps), OwnWires(latency_ps))
        gaps = TokenGaps()
        gaps.add_segments(played.segments)
        gaps.add_requests(played.requests)
        counted = Counter()
        for length, count in zip(*(column.tolist() for column in gaps.counted()), strict=True):
            counted[length] += count
        expected = Counter()
        for story in naive.stories.values():
            if plan.measured_from_ps <= story.request.arrived_ps < plan.measured_until_ps:
                expected.update(
                    after - before for before, after in zip(story.tokens, story.tokens[1:], strict=False)
                )
        assert counted == expected


def test_every_token_in_a_long_run():
    for seed in range(1000, 1010):
        plan, requests, latency_ps = drawn(seed, count=600)
        with seeded(seed):
            compare(plan, requests, OwnWires(latency_ps), OwnWires(latency_ps))


def _batches(played):
    """Replica and start of each prompt's batch."""
    columns = played.requests
    started = columns["arrived_ps"] + columns["phase_queue_ps"]
    return columns["prefill_replica"].tolist(), started.tolist()


def _stopped_by_memory(plan, stories):
    """Whether a prompt waited although its replica computed nothing: memory was held by handoffs."""
    for story in stories:
        others = [other for other in stories if other.prefill_replica == story.prefill_replica]
        busy = any(
            other.prefill is not None
            and other.prefill < story.prefill
            and (other.computed >= story.prefill or other.computed > story.request.arrived_ps)
            for other in others
            if story.prefill is not None
        )
        if story.prefill is not None and story.prefill > story.request.arrived_ps and not busy:
            return True
    return False
