"""A GPU of 1 FLOP/ps and 1 byte/ps without overheads, and a model small enough for pencil and paper."""

from dataclasses import replace

from sim.catalog import Efficiency, Engine, Gpu, Model, Node, load_catalog
from sim.catalog.attention import GroupedAttention
from sim.catalog.layer import Layer
from sim.catalog.mlp import DenseMlp
from sim.timing import Placement, Shard

PS = 10**12

GPU = Gpu(
    name="unit",
    title="Unit GPU",
    provenance={},
    architecture="unit",
    memory_bytes=10**6,
    usable_memory_bytes=10**6,
    memory_bytes_per_s=PS,
    dense_flops={"bf16": PS, "fp8": 2 * PS},
    sparse_flops={},
    nvlink_bytes_per_s=None,
    pcie_bytes_per_s=PS,
    tdp_w=1,
)

EFFICIENCY = Efficiency(
    name="unit",
    title="Unit",
    provenance={},
    gemm_compute={"bf16": 1.0, "fp8": 1.0},
    gemm_memory=1.0,
    attention_compute={"tuned": 1.0},
    attention_memory=1.0,
    elementwise_memory=1.0,
    kernel_time_ps=0,
)

ENGINE = Engine(
    name="unit",
    title="Unit engine",
    provenance={},
    first_token="prefill",
    handoff_order="source-first",
    attention_kernel="tuned",
    page_tokens=4,
    memory_fraction=0.5,
    activation_reserve_bytes=1000,
    prefill_host_time_ps=0,
    prefill_launch_time_ps=0,
    decode_host_time_ps=0,
    decode_item_time_ps=0,
    decode_stream_bytes_per_s=None,
    graph_batches=(),
    first_length_time_ps=0,
    prefill_cached_token_ps=0,
    is_layerwise=False,
    batching="prefill_first",
    token_budget=16384,
    chunk_tokens=16384,
    max_sequences=256,
    kv_reservation="whole",
    preemption="never",
    watermark_fraction=0.0,
    sequence_host_time_ps=0,
    overlaps_host=False,
    prefill_gap_ps=0,
    step_gap_ps=0,
    change_gap_ps=0,
    layer_time_ps=0,
    fp8_cache_part=1.0,
    request_time_ps=0,
    send_time_ps=0,
    handoff_start_ps=0,
    send_bytes_per_s=None,
    staging_bytes_per_s=None,
    restart_time_ps=0,
    fetch_start_ps=0,
    fetch_bytes_per_s=None,
    save_bytes_per_s=None,
)

MODEL = Model(
    name="unit",
    title="Unit model",
    provenance={},
    family="llama",
    hidden=8,
    vocab=32,
    max_context=1000,
    tied_embeddings=False,
    stack=(
        Layer(GroupedAttention(8, heads=2, kv_heads=1, head_dim=4, value_dim=4), DenseMlp(8, 16), norms=16),
    ),
)

NODE = Node(
    name="unit",
    title="Unit node",
    provenance={},
    gpu="unit",
    gpus=8,
    nics=8,
    nic_link="none",
    nvlink=None,
    pcie="none",
    dram_bytes=1,
    dram_bytes_per_s=1,
    nvme_bytes=None,
    nvme_bytes_per_s=None,
    power_w=10,
)

PLACEMENT = Placement(Shard(MODEL, "bf16", "bf16", 1), NODE, GPU, None, ENGINE, EFFICIENCY)


def with_engine(**changes):
    """The unit placement under a changed engine."""
    return replace(PLACEMENT, engine=replace(ENGINE, **changes))


def catalogue_shard(model, precision, tp):
    """A shard of a model of the catalogue, KV in the precision of the weights."""
    return Shard(load_catalog().models[model], precision, precision, tp)
