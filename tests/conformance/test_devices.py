"""Every device of the catalogue: its figures against one another, its neighbours and its links."""

from itertools import pairwise

import pytest

from sim.catalog import load_catalog
from sim.timing import Shard, place, roofline

CATALOG = load_catalog()

ASKED = {
    "a100-sxm-40gb", "a100-sxm-80gb", "a100-mig-3g.40gb", "a800-sxm-80gb", "h800", "h20", "t4", "l4", "l40s",
    "h100", "h100-pcie", "h100-nvl", "h200", "b200", "b300", "gb200", "gb300", "rtx-pro-6000-workstation",
    "rtx-pro-6000-server", "dgx-spark", "apple-m3-ultra", "apple-m4-max", "apple-m5", "rtx-3090", "rtx-4090",
    "rtx-5090", "rubin",
}  # fmt: skip
ARCHITECTURES = {"ampere", "turing", "ada", "hopper", "blackwell", "blackwell-rtx", "apple", "rubin"}

# Ratios that vendors print otherwise than the rule, each with what it is.
SPARSE_PER_DENSE = {("b300", "fp4"): 18 / 14}  # sparsity adds less than twice
FP8_PER_HALF = {"rubin": 4.375}  # as published
FP4_PER_FP8 = {"b300": 14 / 4.5, "gb300": 3, "rtx-5090": 4}  # Ultra's FP4; GeForce halves FP32 accumulation
INT8_PER_HALF = {
    "b300": 0.068, "gb300": 0.066, "rubin": 0.625,  # cut
    "rtx-3090": 4, "rtx-4090": 4,  # GeForce halves FP32 accumulation
}  # fmt: skip
# What a newer GPU gives up.
LESS = {
    ("l4", "memory rate"): 300 / 320,
    ("b300", "int8"): 153.5 / 4500,
    ("gb300", "int8"): 165 / 5000,
    ("rtx-4090", "nvlink"): 0,
}
BOUNDS = {  # of a GPU to its predecessor
    "memory": (1, 2.6),
    "memory rate": (1, 2.8),
    "half": (1, 3.6),
    "tdp": (1, 1.8),
    "host": (1, 4),
}


def half_flops(gpu):
    """Rate in the 16-bit format of a GPU."""
    return gpu.flops("fp16")


def half(gpu):
    """The 16-bit format of a GPU."""
    return "bf16" if "bf16" in gpu.dense_flops else "fp16"


def with_predecessor(shelf):
    return [entry.name for entry in getattr(CATALOG, shelf).values() if entry.predecessor is not None]


def first_node_of(gpu):
    return next(node.name for node in CATALOG.nodes.values() if node.gpu == gpu)


def test_those_that_were_asked_for_are_here():
    assert set(CATALOG.gpus) >= ASKED
    assert set(CATALOG.efficiencies) >= ARCHITECTURES


@pytest.mark.parametrize("name", CATALOG.gpus)
def test_a_gpu_is_plausible(name):
    gpu = CATALOG.gpus[name]
    # Error correction and tables of pages take up to 7 %; an operating system more of what it shares.
    least = 0.7 if gpu.is_unified else 0.93
    assert least * gpu.memory_bytes < gpu.usable_memory_bytes <= gpu.memory_bytes
    assert 0.1e12 < gpu.memory_bytes_per_s < 30e12
    # Below one token per weight a GPU is bound by memory: FLOP per byte lies in a narrow range.
    assert 30 < half_flops(gpu) / gpu.memory_bytes_per_s < 1000
    assert gpu.architecture in CATALOG.efficiencies
    assert 20 < gpu.tdp_w < 3000
    # One to some FLOP for each pJ, whatever the generation.
    assert 0.05e12 < half_flops(gpu) / gpu.tdp_w < 3e12
    assert gpu.price_usd_per_h is None or 0.3 < gpu.price_usd_per_h < 15
    assert gpu.pcie_bytes_per_s < gpu.memory_bytes_per_s or gpu.is_unified
    if gpu.nvlink_bytes_per_s is not None:
        assert gpu.pcie_bytes_per_s < gpu.nvlink_bytes_per_s < gpu.memory_bytes_per_s


@pytest.mark.parametrize("name", CATALOG.gpus)
def test_rates_are_dense(name):
    gpu = CATALOG.gpus[name]
    for precision, sparse in gpu.sparse_flops.items():
        ratio = SPARSE_PER_DENSE.get((name, precision), 2)
        assert sparse / gpu.dense_flops[precision] == pytest.approx(ratio, rel=0.03)
        # Nobody has taken one for the other: the leaf of each says where it is from.
        assert gpu.provenance[f"sparse.{precision}"].text != gpu.provenance[f"dense.{precision}"].text


@pytest.mark.parametrize("name", CATALOG.gpus)
def test_fewer_bits_are_as_much_faster_as_they_should(name):
    gpu = CATALOG.gpus[name]
    rates = gpu.dense_flops
    assert ("bf16" in rates) != ("fp16" in rates)
    assert all(1e12 < rate < 1e17 for rate in rates.values())
    if "fp8" in rates:
        assert rates["fp8"] / rates["bf16"] == pytest.approx(FP8_PER_HALF.get(name, 2), rel=0.03)
    if "fp4" in rates:
        assert rates["fp4"] / rates["fp8"] == pytest.approx(FP4_PER_FP8.get(name, 2), rel=0.03)
    if "int8" in rates:
        assert rates["int8"] / half_flops(gpu) == pytest.approx(INT8_PER_HALF.get(name, 2), rel=0.03)


@pytest.mark.parametrize("name", with_predecessor("gpus"))
def test_a_gpu_differs_from_its_predecessor_within_bounds(name):
    gpu = CATALOG.gpus[name]
    old = CATALOG.gpus[gpu.predecessor]
    ratios = {
        "memory": gpu.memory_bytes / old.memory_bytes,
        "memory rate": gpu.memory_bytes_per_s / old.memory_bytes_per_s,
        "half": half_flops(gpu) / half_flops(old),
        "tdp": gpu.tdp_w / old.tdp_w,
        "host": gpu.pcie_bytes_per_s / old.pcie_bytes_per_s,
    }
    for what, ratio in ratios.items():
        least, most = BOUNDS[what]
        assert ratio == pytest.approx(LESS.get((name, what), ratio), rel=0.01)
        assert LESS.get((name, what), least) * 0.999 <= ratio <= most, what
    for precision in set(gpu.dense_flops) & set(old.dense_flops):
        ratio = gpu.dense_flops[precision] / old.dense_flops[precision]
        assert ratio >= LESS.get((name, precision), 1) * 0.999, precision
    # No precision is lost but FP16, whose place BF16 takes; INT8 where nothing was printed.
    assert set(old.dense_flops) - set(gpu.dense_flops) <= {"fp16", "int8"}
    if old.nvlink_bytes_per_s is not None and (name, "nvlink") not in LESS:
        assert gpu.nvlink_bytes_per_s >= old.nvlink_bytes_per_s


@pytest.mark.parametrize("name", [gpu.name for gpu in CATALOG.gpus.values() if gpu.slice_of])
def test_slices_do_not_exceed_their_gpu(name):
    part = CATALOG.gpus[name]
    whole = CATALOG.gpus[part.slice_of]
    slices = whole.memory_bytes // part.memory_bytes
    assert part.architecture == whole.architecture
    assert slices * part.usable_memory_bytes <= whole.usable_memory_bytes
    assert slices * part.memory_bytes_per_s <= whole.memory_bytes_per_s
    assert all(slices * rate <= whole.dense_flops[precision] for precision, rate in part.dense_flops.items())
    assert slices * part.tdp_w <= whole.tdp_w
    assert part.nvlink_bytes_per_s is None


SAME_CHIP = [  # with what differs
    ("a100-sxm-80gb", "a100-sxm-40gb", {"memory"}),
    ("a800-sxm-80gb", "a100-sxm-80gb", {"nvlink"}),
    ("h200", "h100", {"memory"}),
    ("h800", "h100", {"nvlink"}),
]


@pytest.mark.parametrize(("one", "other", "differs"), SAME_CHIP)
def test_parts_of_one_chip_differ_where_they_should(one, other, differs):
    gpu, twin = CATALOG.gpus[one], CATALOG.gpus[other]
    assert gpu.dense_flops == twin.dense_flops
    assert gpu.architecture == twin.architecture
    assert (gpu.memory_bytes_per_s != twin.memory_bytes_per_s) == ("memory" in differs)
    assert (gpu.nvlink_bytes_per_s != twin.nvlink_bytes_per_s) == ("nvlink" in differs)


@pytest.mark.parametrize("name", CATALOG.nodes)
def test_a_node_is_plausible(name):
    node = CATALOG.nodes[name]
    gpu = CATALOG.gpus[node.gpu]
    assert node.nic_link in CATALOG.links
    assert node.pcie in CATALOG.links
    assert gpu.tdp_w * node.gpus < node.power_w < 3 * gpu.tdp_w * node.gpus
    assert (node.dram_bytes == gpu.memory_bytes) if gpu.is_unified else (node.dram_bytes > gpu.memory_bytes)
    if gpu.is_unified:
        assert node.dram_bytes_per_s == gpu.memory_bytes_per_s
    assert CATALOG.links[node.nic_link].bytes_per_s <= CATALOG.links[node.pcie].bytes_per_s
    assert CATALOG.links[node.pcie].bytes_per_s == gpu.pcie_bytes_per_s
    if node.nvlink is not None:
        assert CATALOG.links[node.nvlink].bytes_per_s == gpu.nvlink_bytes_per_s
    # Whoever has NVLink uses it where there is more than one of them.
    assert (node.nvlink is not None) == (gpu.nvlink_bytes_per_s is not None)
    # Each GPU has as many NICs as every other, or shares one with as many.
    assert node.nics % node.gpus == 0 or node.gpus % node.nics == 0
    # NICs together are no faster than the way from the GPUs to them.
    nics = node.nics * CATALOG.links[node.nic_link].bytes_per_s
    assert nics <= node.gpus * gpu.pcie_bytes_per_s


def test_every_gpu_is_in_a_node_and_every_architecture_in_a_gpu():
    assert {node.gpu for node in CATALOG.nodes.values()} == set(CATALOG.gpus)
    assert {gpu.architecture for gpu in CATALOG.gpus.values()} == set(CATALOG.efficiencies)


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
    # In-network reduction may use each link once instead of twice, but not the same link more. Over PCIe
    # all GPUs share the way through the host, which among eight L40S leaves each a sixteenth.
    least = 0.05 if name.startswith("pcie") else 0.3
    for tables in (link.all_reduce, link.nccl_all_reduce):
        for gpus, points in tables.items():
            size, time_ps = points[-1]
            bus_rate = 2 * (gpus - 1) / gpus * size / (time_ps * 1e-12)
            assert least * link.bytes_per_s < bus_rate < 2 * link.bytes_per_s or size < 2**20
            for small, large in pairwise(points):
                assert small[0] < large[0]
                assert small[1] <= large[1]


@pytest.mark.parametrize("name", [name for name, link in CATALOG.links.items() if link.all_reduce])
def test_more_gpus_reduce_no_faster_where_latency_counts(name):
    tables = CATALOG.links[name].all_reduce
    latencies = [tables[gpus][0][1] for gpus in sorted(tables)]
    assert latencies == sorted(latencies)


@pytest.mark.parametrize("name", CATALOG.efficiencies)
def test_an_efficiency_is_a_fraction(name):
    part = CATALOG.efficiencies[name]
    fractions = [*part.gemm_compute.values(), *part.attention_compute.values()]
    fractions += [part.gemm_memory, part.attention_memory, part.elementwise_memory]
    assert all(0.1 < fraction < 1 for fraction in fractions)
    for gpu in CATALOG.gpus.values():
        if gpu.architecture == name:
            assert set(gpu.dense_flops) <= set(part.gemm_compute)


@pytest.mark.parametrize("name", CATALOG.gpus)
def test_every_gpu_can_be_timed(name):
    """On one GPU, 8 B parameters in 16 bits: between the nominal rates and a tenth of them."""
    gpu = CATALOG.gpus[name]
    model = CATALOG.models["llama-3.1-8b"]
    timing = roofline(place(CATALOG, Shard(model, half(gpu), half(gpu), 1), first_node_of(name)))
    step_s = timing.decode_table(1).step_ps(1, 1024) / 1e12
    read_s = 0.9 * 2 * model.parameters / gpu.memory_bytes_per_s
    assert read_s < step_s < 10 * read_s
    bound_s = 0.85 * 2 * model.parameters * 8192 / half_flops(gpu)
    assert bound_s < timing.prefill_ps([(8192, 0)]) / 1e12 < 10 * bound_s


@pytest.mark.parametrize("name", with_predecessor("gpus"))
def test_a_newer_gpu_serves_no_slower(name):
    new, old = (CATALOG.gpus[each] for each in (name, CATALOG.gpus[name].predecessor))
    nodes = [first_node_of(gpu.name) for gpu in (new, old)]
    decode_slack = LESS.get((name, "memory rate"), 1)
    for precision in ("half", "fp8"):
        for tp in (1, 2, 4, 8):
            formats = [half(gpu) if precision == "half" else precision for gpu in (new, old)]
            if any(tp > CATALOG.nodes[node].gpus for node in nodes) or (
                precision == "fp8" and not all("fp8" in gpu.dense_flops for gpu in (new, old))
            ):
                continue
            newer, older = (
                roofline(place(CATALOG, Shard(CATALOG.models["llama-3.1-70b"], form, form, tp), node))
                for form, node in zip(formats, nodes, strict=True)
            )
            assert newer.prefill_ps([(8192, 0)]) <= older.prefill_ps([(8192, 0)]), (precision, tp)
            steps = [each.decode_table(64).step_ps(64, 64 * 8192) for each in (newer, older)]
            assert steps[0] * decode_slack <= steps[1], (precision, tp)
