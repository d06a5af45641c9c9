"""Mixtures of experts: by hand, against routing expert by expert, and as laws."""

from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from models.experts import grouped_ps, popular
from timing_parts import MODEL, PLACEMENT

from sim.catalog.layer import Layer
from sim.catalog.mlp import DenseMlp, MoeMlp
from sim.timing import Shard, roofline
from sim.timing.moe import bends, popularity, reached

PASSES = 2 * 64 + 64 + 32  # two norms, rotary embedding with new KV, the look-up of the embedding
PROJECTIONS = (256 + 48) + (128 + 32)
HEAD = 64 + 512 + 80


def with_mlp(mlp, weights="bf16", kept=()):
    """The unit placement with another MLP."""
    layer = Layer(MODEL.stack[0].attention, mlp, norms=16, kept=kept)
    return replace(PLACEMENT, shard=Shard(replace(MODEL, stack=(layer,)), weights, "bf16", 1))


def test_one_token_by_hand():
    # Two experts of width 4, one of them works: their chances sum to 1. A tile has 64 rows, so a row alone
    # counts as 32.5 on average.
    table = roofline(with_mlp(MoeMlp(8, experts=2, active=1, inner=4))).decode_table(1)
    router = 32 + (16 + 4)  # 2 x 8, bound by memory
    scores, gather, activation, combine = 2 * 2 * 2, 16 + 16, 3 * 4 * 2, 16 + 16
    grouped = 2 * 8 * 8 * 32.5 + 2 * 8 * 4 * 32.5
    mixture = router + scores + gather + grouped + activation + combine
    assert table.base_ps[1] == round(PROJECTIONS + PASSES + HEAD + mixture)


def test_shared_experts_work_on_every_token():
    bare = roofline(with_mlp(MoeMlp(8, 2, 1, 4))).decode_table(1)
    shared = roofline(with_mlp(MoeMlp(8, 2, 1, 4, shared_inner=16))).decode_table(1)
    dense = (512 + 80) + (256 + 48) + 3 * 16 * 2
    assert shared.base_ps[1] - bare.base_ps[1] == dense


def test_experts_alone_may_be_quantised():
    # Weights of one byte at twice the rate: compute of the experts halves, the rest stays.
    whole = roofline(with_mlp(MoeMlp(8, 2, 1, 4))).decode_table(1).base_ps[1]
    kept = ("attention", "attention_output")
    quantised = roofline(with_mlp(MoeMlp(8, 2, 1, 4), "fp8", kept)).decode_table(1).base_ps[1]
    assert whole - quantised == (2 * 8 * 8 + 2 * 8 * 4) * 32.5 / 2


@pytest.mark.parametrize(("experts", "active"), [(8, 2), (32, 4), (128, 8), (256, 8), (384, 8), (512, 10)])
def test_alike_experts_taken_as_equal_change_little(experts, active):
    naive = popular(experts, active)
    classes = popularity(experts, active)
    assert sum(count for count, _ in classes) == experts
    assert sum(count * chance for count, chance in classes) == pytest.approx(sum(naive), rel=1e-6)
    for tokens in (1, 4, 32, 256, 2048):
        one_by_one = sum(1 - (1 - chance) ** tokens for chance in naive)
        assert reached(experts, active, tokens) == pytest.approx(one_by_one, rel=2e-3)


@pytest.mark.parametrize("tokens", [1, 3, 10, 64, 200, 1000, 5000, 40_000])
def test_a_mixture_against_routing_expert_by_expert(tokens):
    mlp = MoeMlp(64, experts=128, active=8, inner=32)
    timing = roofline(with_mlp(mlp))
    nothing = roofline(with_mlp(replace(mlp, experts=1, active=1)))  # all but the grouped products and moves
    naive = popular(128, 8)
    shapes = [(2 * 32, 64), (64, 32)]
    grouped = sum(grouped_ps(naive, tokens, shape, 2) for shape in shapes)
    alone = sum(grouped_ps([1.0], tokens, shape, 2) for shape in shapes)
    more_rows = 7 * tokens * (2 * 64 * 2 + 3 * 32 * 2)  # gathered, combined, activated
    scores = tokens * 2 * 127 * 2
    by_router = max(2 * 128 * 64 * tokens, 2 * 128 * 64 + tokens * 2 * (64 + 128)) - max(
        2 * 64 * tokens, 2 * 64 + tokens * 2 * (64 + 1)
    )
    expected = grouped - alone + more_rows + scores + by_router
    assert timing._prefill_tokens(tokens) - nothing._prefill_tokens(tokens) == pytest.approx(
        expected, rel=0.01
    )


def test_a_drawn_batch_reaches_as_many_experts_as_expected():
    # Tokens drawn by chance, each expert on its own: 400 batches of 20 tokens.
    dice, chances = Random(3), popular(64, 4)
    counts = []
    for _ in range(400):
        hit = {e for _ in range(20) for e, chance in enumerate(chances) if dice.random() < chance}
        counts.append(len(hit))
    mean = sum(counts) / len(counts)
    spread = (sum((count - mean) ** 2 for count in counts) / len(counts)) ** 0.5
    assert abs(mean - reached(64, 4, 20)) < 4 * spread / 20


@given(st.integers(1, 512), st.integers(1, 16), st.integers(1, 10_000), st.integers(1, 10_000))
def test_more_tokens_reach_no_fewer_experts(experts, active, tokens, more):
    active = min(active, experts)
    assert reached(experts, active, tokens) <= reached(experts, active, tokens + more) <= experts + 1e-9


def test_a_mixture_of_one_expert_does_the_work_of_an_mlp():
    # In the limit of many tokens, where tiles do not count: only router and moves come on top.
    tokens = 100_000
    one = roofline(with_mlp(MoeMlp(8, experts=1, active=1, inner=16)))._prefill_tokens(tokens)
    dense = roofline(with_mlp(DenseMlp(8, 16)))._prefill_tokens(tokens)
    moves = tokens * (2 * 32 + 4 + max(16, 18))  # gather and combine, one score, a router of 1 x 8
    assert one == pytest.approx(dense + moves, rel=1e-3)


def test_bends_are_each_token_at_first_and_then_in_quarters():
    places = bends()
    assert places[:5] == [1, 2, 3, 4, 5]
    assert all(later - first <= max(1, first / 3) for first, later in pairwise(places))
