"""Windows, chunks, latents and states: times by hand on the unit GPU (1 FLOP and 1 byte a picosecond)."""

from dataclasses import replace

import pytest
from models.attending import pairs
from timing_parts import MODEL, PLACEMENT, with_engine

from sim.catalog.attention import GroupedAttention, Indexer, LatentAttention, LinearAttention
from sim.catalog.layer import Layer
from sim.catalog.mlp import DenseMlp
from sim.catalog.reach import Reach
from sim.timing import Shard, plan_memory, roofline

PLAIN = GroupedAttention(8, 2, 1, 4, 4)
LATENT = LatentAttention(8, heads=2, query_rank=4, kv_rank=4, nope_dim=4, rope_dim=2, value_dim=4)


def placed(*attentions, tp=1, engine=PLACEMENT.engine):
    """The unit placement with a layer for each kind of attention."""
    stack = tuple(Layer(attention, DenseMlp(8, 16), 16) for attention in attentions)
    model = replace(MODEL, stack=stack)
    return replace(PLACEMENT, shard=Shard(model, "bf16", "bf16", tp), engine=engine)


def windowed(window=None, chunk=None):
    return replace(PLAIN, reach=Reach(window, chunk))


@pytest.mark.parametrize(("window", "chunk"), [(8, None), (100, None), (None, 16), (None, 7)])
@pytest.mark.parametrize(("new", "cached"), [(40, 0), (10, 30), (1, 99)])
def test_a_prompt_pays_for_the_pairs_in_reach(window, chunk, new, cached):
    full, short = roofline(placed(PLAIN)), roofline(placed(windowed(window, chunk)))
    fewer = pairs(new, cached, None, None) - pairs(new, cached, window, chunk)
    # 4 x 8 FLOP a pair, or 16 bytes a token in reach and 32 for query and result: FLOP decide here
    assert full.prefill_ps([(new, cached)]) - short.prefill_ps([(new, cached)]) == 32 * fewer


def test_a_decode_step_reads_the_window_only():
    table = roofline(placed(windowed(window=8))).decode_table(3)
    plain = roofline(placed(PLAIN)).decode_table(3)
    assert table.per_token_ps[1:] == [0, 0, 0]
    assert [a - b for a, b in zip(table.base_ps, plain.base_ps, strict=True)] == [
        8 * 16 * b for b in range(4)
    ]


def test_layers_of_both_kinds_add_up():
    table = roofline(placed(PLAIN, windowed(window=8), windowed(chunk=20))).decode_table(2)
    assert table.per_token_ps[1:] == [16, 16]
    three = roofline(placed(PLAIN, PLAIN, PLAIN)).decode_table(2)
    assert table.base_ps[2] - three.base_ps[2] == 2 * (8 + 10) * 16


def test_a_step_with_known_contexts_counts_windows_and_chunks_exactly():
    timing = roofline(placed(PLAIN, windowed(window=8), windowed(chunk=20)))
    without = timing.decode_table(3).base_ps[3] - 3 * (8 + 10) * 16
    seen = (5 + 5 + 5) + (19 + 8 + 19) + (45 + 8 + 5)
    assert timing.step_ps([5, 19, 45]) == without + 16 * seen


def test_latents_in_a_prompt():
    # Per token, in FLOP as all products of ten tokens are bound by them: latents 10 x 8, queries 12 x 4,
    # expanding 16 x 4, output 8 x 8, and the MLP; cached latents are expanded as well.
    timing = roofline(placed(LATENT))
    projections = 2 * (10 * 8 + 12 * 4 + 16 * 4 + 8 * 8)
    mlp = 512 + 256
    passes = 2 * 64 + 2 * (4 + 4) * 2 + (2 * 3 * 2 * 2 + 12) + 2 * 2 * 6 * 2 + 96 + 32
    attention = (10 * 5 + 55) * 2 * 2 * (6 + 4)
    expanding = 5 * 2 * 2 * 8 * 4
    head = 64 + 512 + 80
    assert timing.prefill_ps([(10, 5)]) == 10 * (projections + mlp + passes) + attention + expanding + head


def test_latents_in_a_step():
    # Absorbed: heads work on the latent. A token of context is 12 bytes, or 2 x 2 x (4 + 4 + 2) FLOP: these.
    table = roofline(placed(LATENT)).decode_table(1)
    assert table.per_token_ps[1] == 40
    wide = replace(LATENT, heads=1)
    assert roofline(placed(wide)).decode_table(1).per_token_ps[1] == 20
    fast = replace(PLACEMENT.efficiency, attention_compute={"tuned": 100.0})
    bound_by_memory = replace(placed(LATENT), efficiency=fast)
    assert roofline(bound_by_memory).decode_table(1).per_token_ps[1] == 12


def test_latents_are_whole_on_every_gpu():
    one, two = placed(LATENT).shard, placed(LATENT, tp=2).shard
    assert one.kv_bytes_per_token_per_gpu == two.kv_bytes_per_token_per_gpu == 12


def test_an_indexer_bounds_what_attention_reads_but_scores_everything():
    indexed = replace(LATENT, indexer=Indexer(heads=1, head_dim=4, top=16))
    table = roofline(placed(indexed)).decode_table(2)
    assert table.per_token_ps[1:] == [8, 8]  # a key of 4 bytes and its scale, or 2 x 4 FLOP
    timing = roofline(placed(indexed))
    assert timing.step_ps([100]) == table.step_ps(1, 100)
    assert timing.step_ps([100]) - timing.step_ps([10]) == 8 * 90 + 40 * (16 - 10)


def test_a_state_is_read_and_written_in_each_step():
    # hidden 8, 2 states of 4 x 4 in float32; 24 inputs, all of them through a convolution of 4 taps
    state = LinearAttention("delta", 8, 2, 4, 4, 24, 24, 4, 4, chunk=8, small_parameters=0)
    size = 2 * 4 * 4 * 4 + 24 * 3 * 2
    plain = placed(PLAIN, state)
    table = roofline(plain).decode_table(2)
    assert table.per_token_ps[1:] == [16, 16]  # of the other layer
    more = table.base_ps[2] - table.base_ps[1]
    assert more > 2 * size
    assert plain.shard.model.state_bytes_per_gpu(1) == size


def test_streams_and_items_of_an_engine_count_kv_heads_of_each_layer():
    engine = with_engine(decode_item_time_ps=9, decode_stream_bytes_per_s=0.25e12).engine
    table = roofline(placed(PLAIN, windowed(window=8), engine=engine)).decode_table(1)
    plain = roofline(placed(PLAIN, windowed(window=8))).decode_table(1)
    assert table.per_token_ps[1] == 64
    assert table.base_ps[1] - plain.base_ps[1] == 2 * 9 + 8 * (64 - 16)


def test_memory_counts_a_token_in_all_layers():
    assert plan_memory(placed(PLAIN, windowed(window=8))).kv_bytes_per_token == 32
