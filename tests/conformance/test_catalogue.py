"""Every entry of the catalogue: complete, sourced, plausible in itself and against its neighbours."""

import re
from itertools import pairwise

import pytest

from sim.base.errors import UnsupportedError
from sim.catalog import load_catalog
from sim.catalog.entry import VERIFIED
from sim.timing import Shard, kv_capacity_tokens, place, plan_memory, roofline

CATALOG = load_catalog()
SHELVES = ("gpus", "nodes", "links", "models", "engines", "efficiencies")
ENTRIES = [(shelf, name) for shelf in SHELVES for name in getattr(CATALOG, shelf)]
LEAVES = [(shelf, name, path) for shelf, name in ENTRIES for path in getattr(CATALOG, shelf)[name].provenance]
PLACES = [
    (node, model, precision, tp)
    for node in CATALOG.nodes
    for model in ("llama-3.1-8b", "llama-3.1-70b")
    for precision in ("bf16", "fp8")
    for tp in (1, 2, 4, 8)
]
# FP8 runs at twice the rate of bf16, but for what is published of these.
FP8_PER_BF16 = {"rubin": 4.375}


def fits_the_node(node, precision, tp):
    """Whether a shard of this kind can be placed and timed there: GPUs, precision."""
    chassis = CATALOG.nodes[node]
    return tp <= chassis.gpus and precision in CATALOG.gpus[chassis.gpu].dense_flops


PLACED = [place for place in PLACES if fits_the_node(place[0], *place[2:])]
REFUSED = [place for place in PLACES if place not in PLACED]


def leaf_of(shelf, name, path):
    return getattr(CATALOG, shelf)[name].provenance[path]


def with_predecessor(shelf):
    return [entry.name for entry in getattr(CATALOG, shelf).values() if entry.predecessor is not None]


@pytest.mark.parametrize(("shelf", "name"), ENTRIES)
def test_an_entry_is_complete(shelf, name):
    entry = getattr(CATALOG, shelf)[name]
    assert re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name)
    assert entry.title in entry.summary
    assert "\n" not in entry.summary
    assert entry.provenance


@pytest.mark.parametrize(("shelf", "name", "path"), LEAVES)
def test_a_value_is_sourced(shelf, name, path):
    leaf = leaf_of(shelf, name, path)
    assert leaf.verified in VERIFIED
    assert leaf.source in CATALOG.sources
    # A value from memory or by assumption says so in both places, and no other does.
    assert (leaf.source == "memory") == (leaf.verified == "memory")
    assert (leaf.source == "assumption") == (leaf.verified == "assumption")
    assert (CATALOG.sources[leaf.source].kind == "own measurement") == (leaf.verified == "measured")


def test_every_source_is_used():
    assert {leaf_of(*where).source for where in LEAVES} == set(CATALOG.sources)


@pytest.mark.parametrize("name", CATALOG.sources)
def test_a_source_is_public(name):
    source = CATALOG.sources[name]
    assert source.url == "" or source.url.startswith("https://")
    assert source.date
    if source.kind.startswith(("primary", "vendor")):
        assert source.url


@pytest.mark.parametrize("name", CATALOG.gpus)
def test_a_gpu_is_plausible(name):
    gpu = CATALOG.gpus[name]
    assert 0.95 * gpu.memory_bytes < gpu.usable_memory_bytes <= gpu.memory_bytes
    assert 0.1e12 < gpu.memory_bytes_per_s < 30e12
    for precision, rate in gpu.dense_flops.items():
        assert 1e12 < rate < 1e17
        assert rate <= gpu.sparse_flops.get(precision, rate)
    if "fp8" in gpu.dense_flops:
        ratio = gpu.dense_flops["fp8"] / gpu.dense_flops["bf16"]
        assert ratio == pytest.approx(FP8_PER_BF16.get(name, 2), rel=0.01)
    # Below one token per weight a GPU is bound by memory: FLOP per byte lies in a narrow range.
    assert 50 < gpu.dense_flops["bf16"] / gpu.memory_bytes_per_s < 1000
    assert gpu.architecture in CATALOG.efficiencies
    assert 40 < gpu.tdp_w < 3000
    if gpu.nvlink_bytes_per_s is not None:
        assert gpu.pcie_bytes_per_s < gpu.nvlink_bytes_per_s < gpu.memory_bytes_per_s


@pytest.mark.parametrize("name", with_predecessor("gpus"))
def test_a_gpu_is_no_worse_than_its_predecessor(name):
    gpu = CATALOG.gpus[name]
    old = CATALOG.gpus[gpu.predecessor]
    assert gpu.memory_bytes >= old.memory_bytes
    assert gpu.memory_bytes_per_s >= old.memory_bytes_per_s
    assert all(gpu.dense_flops[precision] >= rate for precision, rate in old.dense_flops.items())
    # PCIe gives way to C2C, and NVLink never shrinks.
    assert gpu.pcie_bytes_per_s >= old.pcie_bytes_per_s
    assert gpu.nvlink_bytes_per_s >= old.nvlink_bytes_per_s


@pytest.mark.parametrize("name", CATALOG.nodes)
def test_a_node_is_plausible(name):
    node = CATALOG.nodes[name]
    gpu = CATALOG.gpus[node.gpu]
    assert node.nic_link in CATALOG.links
    assert node.pcie in CATALOG.links
    assert gpu.tdp_w * node.gpus < node.power_w < 3 * gpu.tdp_w * node.gpus
    assert node.dram_bytes > gpu.memory_bytes
    assert CATALOG.links[node.nic_link].bytes_per_s <= CATALOG.links[node.pcie].bytes_per_s
    assert CATALOG.links[node.pcie].bytes_per_s == gpu.pcie_bytes_per_s
    if node.nvlink is not None:
        assert CATALOG.links[node.nvlink].bytes_per_s == gpu.nvlink_bytes_per_s
    # Each GPU has as many NICs as every other, or shares one with as many.
    assert node.nics % node.gpus == 0 or node.gpus % node.nics == 0
    # NICs together are no faster than the way from the GPUs to them.
    nics = node.nics * CATALOG.links[node.nic_link].bytes_per_s
    assert nics <= node.gpus * gpu.pcie_bytes_per_s


@pytest.mark.parametrize("name", [node.name for node in CATALOG.nodes.values() if node.dram_rdma_bytes_per_s])
def test_host_memory_sends_no_faster_than_it_is_read_or_carried(name):
    node = CATALOG.nodes[name]
    carried = node.nics * CATALOG.links[node.nic_link].bytes_per_s
    assert 0.1 * carried < node.dram_rdma_bytes_per_s < min(carried, node.dram_bytes_per_s)


@pytest.mark.parametrize("name", with_predecessor("nodes"))
def test_a_node_is_no_worse_than_its_predecessor(name):
    node = CATALOG.nodes[name]
    old = CATALOG.nodes[node.predecessor]
    assert node.nics / node.gpus * CATALOG.links[node.nic_link].bytes_per_s >= (
        old.nics / old.gpus * CATALOG.links[old.nic_link].bytes_per_s
    )
    assert node.dram_bytes / node.gpus >= old.dram_bytes / old.gpus
    assert node.dram_bytes_per_s / node.gpus >= old.dram_bytes_per_s / old.gpus


@pytest.mark.parametrize("name", CATALOG.links)
def test_a_link_is_plausible(name):
    link = CATALOG.links[name]
    assert 0.3 < link.efficiency <= 1
    assert 0 < link.latency_ps <= 10_000_000
    for gpus, points in [*link.all_reduce.items(), *link.nccl_all_reduce.items()]:
        size, time_ps = points[-1]
        bus_rate = 2 * (gpus - 1) / gpus * size / (time_ps * 1e-12)
        # In-network reduction may use each link once instead of twice, but not the same link more.
        assert 0.3 * link.bytes_per_s < bus_rate < 2 * link.bytes_per_s
        for small, large in pairwise(points):
            assert small[0] < large[0]
            assert small[1] <= large[1]


@pytest.mark.parametrize("name", [name for name, link in CATALOG.links.items() if link.all_reduce])
def test_more_gpus_reduce_no_faster_where_latency_counts(name):
    tables = CATALOG.links[name].all_reduce
    latencies = [tables[gpus][0][1] for gpus in sorted(tables)]
    assert latencies == sorted(latencies)


@pytest.mark.parametrize("name", [name for name, link in CATALOG.links.items() if link.nccl_all_reduce])
def test_nccl_is_no_faster_than_the_kernels_made_for_small_sizes(name):
    link = CATALOG.links[name]
    for gpus, points in link.nccl_all_reduce.items():
        assert points[0][1] > link.all_reduce[gpus][0][1]
        assert points[-1] == link.all_reduce[gpus][-1]


@pytest.mark.parametrize("name", CATALOG.engines)
def test_an_engine_is_plausible(name):
    engine = CATALOG.engines[name]
    assert 0.5 < engine.memory_fraction < 1
    assert all(engine.attention_kernel in part.attention_compute for part in CATALOG.efficiencies.values())


@pytest.mark.parametrize("name", CATALOG.efficiencies)
def test_an_efficiency_is_a_fraction(name):
    part = CATALOG.efficiencies[name]
    fractions = [*part.gemm_compute.values(), *part.attention_compute.values()]
    fractions += [part.gemm_memory, part.attention_memory, part.elementwise_memory]
    assert all(0.1 < fraction < 1 for fraction in fractions)
    for gpu in CATALOG.gpus.values():
        if gpu.architecture == name:
            assert set(gpu.dense_flops) <= set(part.gemm_compute)


@pytest.mark.parametrize(("node", "model", "precision", "tp"), REFUSED)
def test_what_cannot_be_placed_is_refused_with_the_nearest(node, model, precision, tp):
    with pytest.raises(UnsupportedError) as caught:
        roofline(place(CATALOG, Shard(CATALOG.models[model], precision, precision, tp), node))
    gpu = CATALOG.gpus[CATALOG.nodes[node].gpu]
    assert CATALOG.nodes[node].title in caught.value.problem or gpu.title in caught.value.problem
    assert re.search(r"\btp 4 or less$|\bBF16\b", caught.value.nearest)


@pytest.mark.parametrize(("node", "model", "precision", "tp"), PLACED)
def test_a_placement_fits_or_says_by_how_much_not(node, model, precision, tp):
    placement = place(CATALOG, Shard(CATALOG.models[model], precision, precision, tp), node)
    plan = plan_memory(placement)
    if plan.fits:
        assert kv_capacity_tokens(placement) == plan.kv_tokens
        used = plan.weight_bytes + plan.activation_bytes + plan.kv_tokens * plan.kv_bytes_per_token
        assert used <= plan.budget_bytes < plan.usable_bytes
    else:
        with pytest.raises(UnsupportedError, match=r"the weights do not fit.* missing"):
            kv_capacity_tokens(placement)


@pytest.mark.parametrize(("node", "model", "precision", "tp"), PLACED)
def test_a_placement_has_plausible_times(node, model, precision, tp):
    placement = place(CATALOG, Shard(CATALOG.models[model], precision, precision, tp), node)
    timing, parameters = roofline(placement), placement.shard.model.parameters
    # No faster than the nominal rates allow, and no slower than a tenth of them.
    prefill_s = timing.prefill_ps([(8192, 0)]) / 1e12
    bound_s = 2 * parameters * 0.98 * 8192 / tp / placement.gpu.flops(precision)
    assert (1 if "70b" in model else 0.9) * bound_s < prefill_s < 10 * bound_s
    step_s = timing.decode_table(1).step_ps(1, 1024) / 1e12
    read_s = placement.shard.weight_bytes_per_gpu * 0.85 / placement.gpu.memory_bytes_per_s
    assert read_s < step_s < 20 * read_s


@pytest.mark.parametrize("name", with_predecessor("gpus"))
def test_a_newer_gpu_serves_no_slower(name):
    pair = (name, CATALOG.gpus[name].predecessor)
    nodes = [next(node.name for node in CATALOG.nodes.values() if node.gpu == gpu) for gpu in pair]
    common = [
        (precision, tp)
        for precision in ("bf16", "fp8")
        for tp in (1, 2, 4, 8)
        if all(fits_the_node(node, precision, tp) for node in nodes)
    ]
    assert ("bf16", 1) in common
    for precision, tp in common:
        shard = Shard(CATALOG.models["llama-3.1-70b"], precision, precision, tp)
        new, old = (roofline(place(CATALOG, shard, node)) for node in nodes)
        assert new.prefill_ps([(8192, 0)]) <= old.prefill_ps([(8192, 0)])
        assert new.decode_table(64).step_ps(64, 64 * 8192) <= old.decode_table(64).step_ps(64, 64 * 8192)
