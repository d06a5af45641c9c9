"""Batching rules, orders and the limits of colocated pools, by hand."""

import pytest

from sim.catalog import load_catalog
from sim.config.pool import Pool
from sim.serving.batching import Allowance, Limits, Load, batching
from sim.serving.order import order
from sim.serving.pools import limits_of, misfits, rule_of
from sim.workload.request import Request

LIMITS = Limits(token_budget=100, chunk_tokens=30, max_sequences=8)
ENGINES = load_catalog().engines


@pytest.mark.parametrize(
    ("rule", "load", "allowance"),
    [
        ("prefill_first", Load(3, 0, 9), Allowance(100, 5)),
        ("prefill_first", Load(8, 0, 9), Allowance(100, 0)),
        ("chunked", Load(3, 1, 9), Allowance(97, 4, is_chunked=True, mixes=True)),
        ("chunked", Load(0, 0, 9), Allowance(100, 8, is_chunked=True, mixes=True)),
        ("mixed", Load(3, 0, 9), Allowance(97, 5, mixes=True)),
        ("chunked_apart", Load(3, 1, 9), Allowance(100, 4, is_chunked=True)),
        ("static", Load(0, 0, 9), Allowance(100, 8)),
        ("static", Load(1, 0, 9), Allowance(100, 0)),
        ("prefill_only", Load(0, 0, 9), Allowance(100, 8)),
        ("decode_only", Load(3, 0, 9), Allowance(0, 0)),
    ],
)
def test_what_a_step_may_do(rule, load, allowance):
    assert batching[rule](load, LIMITS) == allowance


def test_orders():
    early = Request(0, 10, 500, 1, priority=1)
    short = Request(1, 20, 5, 1, priority=1)
    urgent = Request(2, 30, 400, 1, priority=0)
    found = {name: [one.id for one in sorted((early, short, urgent), key=order[name])] for name in order}
    assert found == {"fcfs": [0, 1, 2], "shortest_prompt": [1, 2, 0], "priority": [2, 0, 1]}


def pool(**fields):
    return Pool(name="serve", role="colocated", replicas=1, tp=1, **fields)


def test_limits_are_those_of_the_engine_where_the_pool_says_nothing():
    assert limits_of(pool(), ENGINES["vllm"]) == Limits(8192, 8192, 1024)
    assert limits_of(pool(max_batch_tokens=512, max_sequences=4), ENGINES["rust-custom"]) == Limits(
        512, 512, 4
    )
    assert limits_of(pool(chunk_tokens=256), ENGINES["sglang"]) == Limits(16384, 256, 512)
    assert rule_of(pool(), ENGINES["sglang"]) == "chunked_apart"
    assert rule_of(pool(batching="static"), ENGINES["sglang"]) == "static"


def wrong(engine="vllm", **fields):
    one = pool(**fields)
    return [key for key, _, _ in misfits(one, ENGINES[engine], batching[rule_of(one, ENGINES[engine])])]


def test_combinations_that_cannot_be():
    assert wrong() == []
    assert wrong(batching="decode_only") == ["batching"]
    assert wrong(batching="static", chunk_tokens=100) == ["chunk_tokens"]
    assert wrong(chunk_tokens=9000) == ["chunk_tokens"]
    assert wrong(max_batch_tokens=1000) == ["max_batch_tokens"]
    assert wrong(max_sequences=8192) == ["max_sequences"]
    assert wrong("sglang", max_batch_tokens=100) == []  # prompts do not share its steps with decode
    assert wrong(place="per-domain 1:2") == ["place"]
