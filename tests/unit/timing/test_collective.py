"""The all-reduce of a replica: by hand, by its laws, and against what others have published.

Published times were measured by other people on other machines than those of the tables; none of them was
fitted to, but for the 8 KiB between two DGX Sparks, from which the start of a collective was taken.
"""

from itertools import pairwise

import pytest

from sim.catalog import Link, load_catalog
from sim.timing.collective import START_PS, STEP_PS, Collective, Table, Wire, collective, ring_part

CATALOG = load_catalog()
LINKS = CATALOG.links
US = 10**6
KIB, MIB, GIB = 2**10, 2**20, 2**30
SIZES = [2**power for power in range(8, 34)]

TABLE = {2: [(100, 50.0), (1100, 150.0)], 8: [(100, 80.0), (1100, 255.0)]}


def link(**changes):
    """A byte in a picosecond, and 10 ps for a hop."""
    plain = {
        "name": "unit",
        "title": "Unit link",
        "provenance": {},
        "bytes_per_s": 10**12,
        "efficiency": 1.0,
        "latency_ps": 10,
        "endpoint_latency_ps": 1,
        "all_reduce": TABLE,
    }
    return Link(**plain | changes)


UNIT = link()


def test_a_measured_number_of_gpus_takes_what_was_measured():
    curve = Collective(2, UNIT, Table(UNIT, 2, TABLE[2])).curve()
    assert [curve(size) for size in (0, 100, 600, 1100, 2100)] == [50, 50, 100, 150, 250]


def test_more_gpus_take_a_hop_for_each_doubling_and_send_a_larger_part():
    """From 8 to 32: 80 + 2 hops of 10; 175 for 1000 bytes at 7/4 of them become 193.75 at 31/16."""
    curve = Collective(32, UNIT, Table(UNIT, 8, TABLE[8])).curve()
    assert curve(100) == 100
    assert curve(1100) == pytest.approx(100 + 193.75)
    assert curve(2100) == pytest.approx(100 + 2 * 193.75)


def test_a_link_of_twice_the_rate_moves_the_bytes_of_its_predecessor_in_half_the_time():
    fast = link(name="fast", bytes_per_s=2 * 10**12)
    curve = Collective(8, fast, Table(UNIT, 8, TABLE[8])).curve()
    assert [curve(100), curve(1100)] == [80, 80 + 175 / 2]


def test_a_link_without_any_table_is_a_ring():
    """Four members: six hops of 10 after the kernel, and one and a half times the bytes at 1 a picosecond."""
    curve = Collective(4, link(all_reduce={}), None).curve()
    assert curve(1000) - curve(0) == pytest.approx(1500)
    assert curve(0) == 6_600_000 + 60


@pytest.mark.parametrize(("nics_per_ps", "grown"), [(100, 175), (5, 220), (1, 1100)])
def test_two_domains_add_two_steps_and_the_slower_of_both_networks(nics_per_ps, grown):
    """For 1100 bytes the table adds 175; the NICs send all of them once: 11, 220 or 1100."""
    curve = Collective(8, UNIT, Table(UNIT, 8, TABLE[8]), Wire(2, nics_per_ps * 10**12, 7)).curve()
    fixed = 80 + START_PS + 2 * (7 + STEP_PS)
    assert curve(0) == fixed
    assert curve(1100) == pytest.approx(fixed + grown)


def test_one_gpu_in_each_of_four_domains_is_a_ring_over_the_nics_alone():
    curve = Collective(1, UNIT, None, Wire(4, 10**12, 7)).curve()
    assert curve(1000) == pytest.approx(START_PS + 6 * (7 + STEP_PS) + 1500)


def test_the_nearest_table_of_the_family_is_taken():
    rack, board = LINKS["nvlink-5-nvl72"], LINKS["nvlink-5"]
    for gpus, (origin, measured) in {2: (rack, 2), 4: (rack, 4), 8: (board, 8), 72: (board, 8)}.items():
        found = collective(CATALOG, rack, gpus)
        assert (found.table.link.name, found.table.gpus) == (origin.name, measured)
        assert found.is_measured == (gpus <= 4)
    newer = collective(CATALOG, LINKS["nvlink-6-nvl72"], 8)
    assert (newer.table.link.name, newer.is_measured) == ("nvlink-5", False)
    assert collective(CATALOG, LINKS["pcie-5-x16"], 1, Wire(2, 1.0, 1)).is_measured


def test_across_domains_nccl_does_what_custom_kernels_do_inside():
    inside = collective(CATALOG, LINKS["nvlink-5"], 8)
    across = collective(CATALOG, LINKS["nvlink-5"], 8, Wire(2, 396e9, 1_210_000))
    assert inside.table.points[0] == (8 * KIB, 5.05 * US)
    assert across.table.points[0] == (8 * KIB, 26.02 * US)


MANY = [
    (name, gpus, wire)
    for name in ("nvlink-3", "nvlink-4", "nvlink-5", "nvlink-5-nvl72", "nvlink-6-nvl72", "pcie-5-x16")
    for gpus in (1, 2, 3, 4, 6, 8, 16, 64, 72)
    for wire in (None, Wire(2, 396e9, 1_210_000), Wire(4, 20e9, 14_500_000), Wire(3, 4e12, 100))
]


@pytest.mark.parametrize(("name", "gpus", "wire"), MANY)
def test_more_bytes_never_take_less_and_never_outrun_the_links(name, gpus, wire):
    """No NIC is asked for more than it carries, and no GPU's port for more than twice (NVLS halves it)."""
    found = collective(CATALOG, LINKS[name], gpus, wire)
    curve = found.curve()
    times = [curve(size) for size in SIZES]
    assert all(small <= large for small, large in pairwise(times))
    for size, time_ps in zip(SIZES, times, strict=True):
        assert ring_part(gpus) * size / (time_ps or 1) < 2 * LINKS[name].bytes_per_s / 1e12
        if wire is not None:
            assert wire.crossing(size) / time_ps < wire.bytes_per_s / 1e12
            assert time_ps > collective(CATALOG, LINKS[name], gpus).curve()(size)


@pytest.mark.parametrize("size", [KIB, MIB, GIB])
def test_more_domains_take_longer(size):
    times = [
        collective(CATALOG, LINKS["nvlink-4"], 8, wire).curve()(size)
        for wire in (None, *(Wire(domains, 396e9, 1_210_000) for domains in (2, 3, 4, 8)))
    ]
    assert times == sorted(times)
    assert len(set(times)) > 2


NDR, HDR, EFA = 49.5e9, 24.75e9, 48.75e9
ONE_LEAF_PS, SPINE_PS = 1_210_000, 1_690_000


def bus(gpus, size, gb_per_s):
    """The time in us of an all-reduce that was published as a bus bandwidth."""
    return ring_part(gpus) * size / gb_per_s / 1e3


PUBLISHED = {
    # microsoft/mscclpp issue 531 (2025): 16 A100 in two nodes, NCCL in a CUDA graph; its 4 NICs taken as HDR
    "A100 2 x 8": (
        ("nvlink-3", 8, Wire(2, 4 * HDR, ONE_LEAF_PS)),
        [(2 * KIB, 44.27), (8 * KIB, 47.41), (32 * KIB, 49.03), (64 * KIB, 55.54), (128 * KIB, 66.62)],
        (-0.25, 0.15),
    ),
    "A100 2 x 8, 256 KiB": (
        ("nvlink-3", 8, Wire(2, 4 * HDR, ONE_LEAF_PS)),
        [(256 * KIB, 83.27)],
        (-0.40, 0.0),
    ),
    # NVIDIA/nccl issue 1244 (2024): 16 H20 in two nodes, 8 NDR a node, NCCL 2.21.5, NVLSTree
    "H20 2 x 8": (("nvlink-4", 8, Wire(2, 8 * NDR, ONE_LEAF_PS)), [(512, 46.6), (KIB, 46.5)], (-0.10, 0.10)),
    # local-inference-lab/b12x, evidence of 2026-09-02 and 2026-10-01: DGX Spark, one GPU, 200 Gb/s RoCE
    "Spark x 3": (("pcie-5-x16", 1, Wire(3, 21.75e9, 2_700_000)), [(8 * KIB, 45.3)], (-0.15, 0.15)),
    "Spark x 4": (
        ("pcie-5-x16", 1, Wire(4, 21.75e9, 3_300_000)),
        [(8 * KIB, 51.3), (48_000, 59.0)],
        (-0.15, 0.15),
    ),
    # coreweave/nccl-tests, README: 64 H100 in eight nodes, NDR
    "H100 8 x 8": (
        ("nvlink-4", 8, Wire(8, 8 * NDR, SPINE_PS)),
        [(512 * MIB, 2984.6), (GIB, 5808.0), (2 * GIB, 11163.0), (8 * GIB, 43980.0)],
        (-0.20, 0.0),
    ),
    # the same: GB200 NVL72, one rack and two (NCCL 2.26.2)
    "GB200 72": (
        ("nvlink-5-nvl72", 72, None),
        [(512 * MIB, 1806.7), (GIB, 3108.8), (4 * GIB, 10094.0), (8 * GIB, 20299.0)],
        (-0.20, 0.15),
    ),
    "GB200 2 x 72": (
        ("nvlink-5-nvl72", 72, Wire(2, 72 * NDR, SPINE_PS)),
        [(512 * MIB, 2156.8), (GIB, 3574.4), (4 * GIB, 11469.0), (8 * GIB, 21493.0)],
        (-0.30, 0.10),
    ),
    # sgl-project/sglang pull request 37442 (2026): 8 trays of a rack, MSCCL++ in a CUDA graph
    "GB200 32": (
        ("nvlink-5-nvl72", 32, None),
        [(8 * KIB, 9.10), (16 * KIB, 8.62), (32 * KIB, 8.90), (64 * KIB, 8.58)],
        (-0.35, 0.0),
    ),
    # S. Bekman, Machine Learning Engineering, network chapter: 32 B200 in four p6-b200. EFA takes far longer
    # for small sizes than its latency says, and NCCL gets 37 of 50 GB/s out of each NIC for large ones
    "B200 4 x 8 EFA, small": (
        ("nvlink-5", 8, Wire(4, 8 * EFA, 14_500_000)),
        [(size, bus(32, size, rate)) for size, rate in ((256 * KIB, 1.33), (MIB, 5.37), (16 * MIB, 64.43))],
        (-0.65, 0.0),
    ),
    "B200 4 x 8 EFA, middle": (
        ("nvlink-5", 8, Wire(4, 8 * EFA, 14_500_000)),
        [(size, bus(32, size, rate)) for size, rate in ((64 * MIB, 156.74), (256 * MIB, 229.09))],
        (-0.55, 0.0),
    ),
    "B200 4 x 8 EFA, large": (
        ("nvlink-5", 8, Wire(4, 8 * EFA, 14_500_000)),
        [(size, bus(32, size, rate)) for size, rate in ((GIB, 361.99), (4 * GIB, 377.34), (16 * GIB, 381.8))],
        (-0.30, 0.0),
    ),
}


@pytest.mark.parametrize("case", PUBLISHED)
def test_published_times_are_met_as_well_as_the_docstring_says(case):
    (name, gpus, wire), rows, (least, most) = PUBLISHED[case]
    curve = collective(CATALOG, LINKS[name], gpus, wire).curve()
    for size, published_us in rows:
        error = curve(size) / US / published_us - 1
        assert least <= error <= most, f"{size} bytes: {error:+.0%}"
