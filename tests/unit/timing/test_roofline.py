"""The roofline against pencil and paper, in exact picoseconds.

The unit GPU does 1 FLOP and moves 1 byte per picosecond; the unit model has hidden 8, 2 heads of 4 with 1 KV
head, MLP 16, vocabulary 32, one layer, bf16. For m tokens a GEMM n x k takes the larger of 2nkm and
2nk + (2k + 2n)m:
  qkv     16 x 8:  256 m  or  256 + 48 m
  out      8 x 8:  128 m  or  128 + 32 m
  gate-up 32 x 8:  512 m  or  512 + 80 m
  down     8 x 16: 256 m  or  256 + 48 m
Passes over memory: two norms of 64 m, rotary 48 m + 16 m of new KV, activation 96 m, embedding 32 m.
The head: norm 64 p and a GEMM 32 x 8 for p prompts.
"""

from dataclasses import replace

import pytest
from timing_parts import PLACEMENT, PS, catalogue_shard, with_engine

from sim.catalog import Link, load_catalog
from sim.timing import Shard, place, roofline
from sim.timing.collective import Collective, Table

NVLINK = Link(
    name="unit",
    title="Unit link",
    provenance={},
    bytes_per_s=PS,
    efficiency=1.0,
    latency_ps=1,
    endpoint_latency_ps=1,
    all_reduce={2: [(160, 1000.0), (1600, 5000.0)]},
)
PASSES = 2 * 64 + 64 + 96 + 32  # a token
HEAD = 64 + 512 + 80  # one prompt, bound by memory


def test_a_decode_step_of_one():
    table = roofline(PLACEMENT).decode_table(1)
    gemms = (256 + 48) + (128 + 32) + (512 + 80) + (256 + 48)
    assert table.base_ps == [0, gemms + PASSES + HEAD]
    assert table.per_token_ps == [0, 16]  # 2 x 1 head x 4 x 2 bytes


def test_a_decode_step_of_ten_is_bound_by_compute():
    gemms = 10 * (256 + 128 + 512 + 256)
    assert roofline(PLACEMENT).decode_table(10).base_ps[10] == gemms + 10 * PASSES + 10 * (64 + 512)


def test_a_prefill_bound_by_compute():
    # 10 new after 5 cached: 105 pairs of query and key, 4 x 8 FLOP each
    expected = 10 * (256 + 128 + 512 + 256) + 10 * PASSES + 105 * 32 + HEAD
    assert roofline(PLACEMENT).prefill_ps([(10, 5)]) == expected


def test_attention_of_a_long_cached_prefix_is_bound_by_memory():
    # 1 new after 1,000 cached: KV of 1,001 tokens of 16 bytes, q and o of 32 bytes
    fast = replace(PLACEMENT, efficiency=replace(PLACEMENT.efficiency, attention_compute={"tuned": 100.0}))
    gemms = (256 + 48) + (128 + 32) + (512 + 80) + (256 + 48)
    assert roofline(fast).prefill_ps([(1, 1000)]) == gemms + PASSES + 1001 * 16 + 32 + HEAD


def test_a_batch_shares_gemms_but_not_attention():
    one, two = (10, 0), (6, 3)
    pairs = 55 + (6 * 3 + 21)
    gemms = 16 * (256 + 128 + 512 + 256)
    head = 2 * (64 + 512)  # two prompts bind the head by compute
    assert roofline(PLACEMENT).prefill_ps([one, two]) == gemms + 16 * PASSES + pairs * 32 + head


def test_kernels_cost_their_fixed_time():
    slow = replace(PLACEMENT, efficiency=replace(PLACEMENT.efficiency, kernel_time_ps=1000))
    # a layer: 4 GEMMs, 4 passes, attention; besides: embedding, last norm, head
    assert (
        roofline(slow).decode_table(1).base_ps[1] - roofline(PLACEMENT).decode_table(1).base_ps[1] == 12_000
    )
    assert roofline(slow).prefill_ps([(10, 0)]) - roofline(PLACEMENT).prefill_ps([(10, 0)]) == 12_000


def test_the_engine_adds_its_host_times():
    plain, engine = roofline(PLACEMENT), with_engine(prefill_host_time_ps=7, decode_host_time_ps=5)
    assert roofline(engine).prefill_ps([(10, 0)]) == plain.prefill_ps([(10, 0)]) + 7
    assert roofline(engine).decode_table(1).base_ps[1] == plain.decode_table(1).base_ps[1] + 5


def test_a_prefill_is_not_shorter_than_its_launching():
    launching = roofline(with_engine(prefill_launch_time_ps=100_000, prefill_host_time_ps=7))
    assert launching.prefill_ps([(1, 0)]) == 100_007
    assert launching.prefill_ps([(1000, 0)]) == roofline(PLACEMENT).prefill_ps([(1000, 0)]) + 7


def test_items_and_streams_of_the_decode_kernel():
    table = roofline(with_engine(decode_item_time_ps=9, decode_stream_bytes_per_s=PS / 4)).decode_table(8)
    plain = roofline(PLACEMENT).decode_table(8)
    assert [a - b for a, b in zip(table.base_ps, plain.base_ps, strict=True)] == [9 * b for b in range(9)]
    assert table.per_token_ps == [0, 64, 32, 22, 16, 16, 16, 16, 16]  # 64/3 rounded up


def test_a_cache_in_fp8_is_read_at_its_part_of_the_rate():
    """8 bytes of a token in FP8, 16 in bf16, of which the part says nothing."""
    engine = with_engine(fp8_cache_part=0.5)
    narrow = replace(engine, shard=replace(engine.shard, kv="fp8"))
    assert roofline(narrow).decode_table(1).per_token_ps == [0, 16]
    assert roofline(engine).decode_table(1).per_token_ps == [0, 16]
    assert roofline(replace(narrow, engine=PLACEMENT.engine)).decode_table(1).per_token_ps == [0, 8]


def test_layers_take_what_no_operator_stands_for():
    plain, engine = roofline(PLACEMENT), with_engine(layer_time_ps=9)
    assert roofline(engine).decode_table(1).base_ps[1] - plain.decode_table(1).base_ps[1] == 9
    assert roofline(engine).prefill_ps([(10, 0)]) - plain.prefill_ps([(10, 0)]) == 9
    assert roofline(engine).mixed_ps([(10, 0)], 2, 20) - plain.mixed_ps([(10, 0)], 2, 20) == 9


@pytest.mark.parametrize(("weights", "passes"), [("fp8", 0), ("fp4", 4)])
def test_inputs_of_products_with_block_scales_are_quantised_by_passes_of_their_own(weights, passes):
    """Four products a layer; what else differs with the kernel's fixed time does so in both precisions."""
    part = load_catalog().efficiencies["blackwell"]
    steps = []
    for kernel_ps in (0, 10**6):
        placement = place(load_catalog(), catalogue_shard("llama-3.1-8b", "fp8", 1), "dgx-b200")
        shard = replace(placement.shard, weights=weights)
        slow = replace(placement, shard=shard, efficiency=replace(part, kernel_time_ps=kernel_ps))
        steps.append(roofline(slow).decode_table(1).base_ps[1])
    kernels = 32 * (4 + 4 + 1 + passes) + 3  # products, passes, attention; embedding, norm, head
    assert steps[1] - steps[0] == pytest.approx(kernels * 10**6, abs=64)


def test_graph_batches_cost_the_next_size():
    table = roofline(with_engine(graph_batches=(1, 4))).decode_table(5)
    plain = roofline(PLACEMENT).decode_table(5)
    assert table.base_ps == [0, plain.base_ps[1], *[plain.base_ps[4]] * 3, plain.base_ps[5]]


def test_two_gpus_split_the_work_and_reduce_twice_a_layer():
    reduce = Collective(2, NVLINK, Table(NVLINK, 2, NVLINK.all_reduce[2]))
    pair = replace(PLACEMENT, shard=Shard(PLACEMENT.shard.model, "bf16", "bf16", 2), collective=reduce)
    # One query head and a copy of the KV head on each: qkv 12 x 8, out 8 x 4, gate-up 16 x 8, down 8 x 8.
    gemms = 10 * 2 * (12 * 8 + 8 * 4 + 16 * 8 + 8 * 8)
    passes = 10 * (2 * 64 + (2 * 8 * 2 + 16) + 48 + 32)
    attention = 55 * 16
    head = 64 + 2 * 16 * 8 + (2 * 8 + 2 * 16)
    reduced = 2 * 1000  # 10 tokens of 8 numbers of 2 bytes, twice
    assert roofline(pair).prefill_ps([(10, 0)]) == gemms + passes + attention + head + reduced


def test_fp8_halves_weights_but_not_the_head():
    shard = Shard(PLACEMENT.shard.model, "fp8", "fp8", 1)
    table = roofline(replace(PLACEMENT, shard=shard)).decode_table(1)
    # weights and inputs of one byte, outputs of two
    gemms = (128 + 8 + 32) + (64 + 8 + 16) + (256 + 8 + 64) + (128 + 16 + 16)
    assert table.base_ps[1] == gemms + PASSES - 8 + HEAD  # 8 bytes of new KV instead of 16
    assert table.per_token_ps[1] == 8


def test_times_are_the_same_every_time():
    placement = place(load_catalog(), catalogue_shard("llama-3.1-70b", "fp8", 8), "dgx-b200")
    first, second = roofline(placement), roofline(placement)
    assert first.prefill_ps([(12_000, 0)]) == second.prefill_ps([(12_000, 0)])
    assert first.decode_table(256) == second.decode_table(256)
    assert all(
        type(value) is int for value in first.decode_table(8).base_ps + first.decode_table(8).per_token_ps
    )
    assert type(first.prefill_ps([(5, 5)])) is int


@pytest.mark.parametrize("tp", [1, 2, 4, 8])
def test_more_gpus_are_faster_on_large_work(tp):
    catalog = load_catalog()
    one = roofline(place(catalog, catalogue_shard("llama-3.1-8b", "bf16", 1), "hgx-h200"))
    some = roofline(place(catalog, catalogue_shard("llama-3.1-8b", "bf16", tp), "hgx-h200"))
    assert some.prefill_ps([(8192, 0)]) <= one.prefill_ps([(8192, 0)])
