"""What the bytes of each kind of transfer cross, by name, and what that makes of their rate."""

import pytest
from models.clusters import B200_4000, SMALL, changed, cluster_of

from sim.base.errors import UnsupportedError
from sim.clock import Clock
from sim.config.scenario import Pool
from sim.network.fabric import Fabric, Port
from sim.network.flows import FlowNetwork
from sim.network.maxmin import MaxMin, Rated
from sim.serving.seating import lanes, seat

NO_GPUDIRECT = ("  rails: 8", "  rails: 8\n  gpudirect: false")
OVER_SPINES = ("  rails: 8", "  rails: 8\n  other_rail: spine")
NVLINK, PCIE = "NVLink 5 through NVSwitch", "PCI Express 5.0 x16"


@pytest.fixture
def fabric(tmp_path):
    """Make the fabric of twelve nodes, or of a shipped topology, with changes to its text."""

    def make(*changes, lanes=1, text=SMALL):
        return Fabric(cluster_of(tmp_path, changed(text, *changes)), lanes)

    return make


def shipped(name):
    return (B200_4000.parent / name).read_text()


def names(fabric, path):
    return [fabric.described[i].name for i in path.counted]


def rate(path):
    """Bytes per second of a flow alone."""
    flow = Rated(path.links)
    MaxMin().add(flow)
    return flow.rate * 1e12


def test_between_gpus_of_a_node_only_their_nvlink_ports(fabric):
    one = fabric()
    path = one.gpu_to_gpu(Port(1, 3), Port(1, 4))
    assert names(one, path) == [f"node 1 {NVLINK} tx rail 3", f"node 1 {NVLINK} rx rail 4"]
    assert rate(path) == pytest.approx(one.cluster.local[1].effective_bytes_per_s)


def test_over_the_fabric_with_gpudirect_only_nics_and_switches(fabric):
    one = fabric()
    path = one.gpu_to_gpu(Port(1, 3), Port(9, 3))
    assert names(one, path) == [
        "node 1 NIC tx rail 3",
        "unit 0 leaf 3 up",
        "pod 0 spines up",
        "pod 1 spines down",
        "unit 2 leaf 3 down",
        "node 9 NIC rx rail 3",
    ]
    assert rate(path) == pytest.approx(one.cluster.rate_bytes_per_s)


def test_over_the_fabric_without_gpudirect_through_host_memory_on_both_sides(fabric):
    one = fabric(NO_GPUDIRECT)
    path = one.gpu_to_gpu(Port(1, 3), Port(2, 3))
    assert names(one, path) == [
        f"node 1 {PCIE} up rail 3",
        "node 1 host memory",
        "node 1 host memory",
        "node 1 RDMA from host memory",
        "node 1 NIC tx rail 3",
        "node 2 NIC rx rail 3",
        "node 2 host memory",
        "node 2 host memory",
        f"node 2 {PCIE} down rail 3",
    ]


def test_without_gpudirect_nvlink_inside_a_node_stays_as_it_is(fabric):
    one = fabric(NO_GPUDIRECT)
    path = one.gpu_to_gpu(Port(1, 3), Port(1, 4))
    assert names(one, path) == [f"node 1 {NVLINK} tx rail 3", f"node 1 {NVLINK} rx rail 4"]


def test_host_memory_crossed_twice_holds_back_at_half_of_its_rate(fabric):
    """Eight rails of 49.5 GB/s are 396; 409 GB/s of host memory, read and written, leave 204.5."""
    one = fabric(NO_GPUDIRECT, ("dgx-b200", "dgx-a100"), lanes=8)
    path = one.gpu_to_gpu(Port(1, 0), Port(2, 0))
    memory = one.cluster.types[1].dram_bytes_per_s
    assert memory / 2 < 8 * one.cluster.rate_bytes_per_s
    assert rate(path) == pytest.approx(memory / 2)


def test_what_is_staged_leaves_host_memory_no_faster_than_anything_else(fabric):
    """716 GB/s of host memory, crossed twice, would leave 358; but a host was seen to send 222."""
    one = fabric(NO_GPUDIRECT, lanes=8)
    assert rate(one.gpu_to_gpu(Port(1, 0), Port(2, 0))) == pytest.approx(222e9)


def test_host_memory_crossed_twice_counts_double(fabric):
    one = fabric(NO_GPUDIRECT)
    clock = Clock()
    FlowNetwork(clock, one.table.carried).send([(10**6, one.gpu_to_gpu(Port(1, 3), Port(2, 3)))])
    while clock.advance(10):
        pass
    carried = {link.name: moved for link, moved in zip(one.described, one.table.carried, strict=True)}
    assert carried["node 1 host memory"] == carried["node 2 host memory"] == 2 * 10**6
    assert carried["node 1 NIC tx rail 3"] == carried[f"node 2 {PCIE} down rail 3"] == 10**6


def test_another_rail_takes_nvlink_to_the_gpu_beside_the_nic_of_its_receiver(fabric):
    one = fabric()
    path = one.gpu_to_gpu(Port(1, 3), Port(5, 6))
    assert names(one, path) == [
        f"node 1 {NVLINK} tx rail 3",
        f"node 1 {NVLINK} rx rail 6",
        "node 1 NIC tx rail 6",
        "unit 0 leaf 6 up",
        "unit 1 leaf 6 down",
        "node 5 NIC rx rail 6",
    ]


def test_another_rail_takes_the_spines_where_the_fabric_says_so(fabric):
    """Also to a node of the same unit: its leaves are different switches."""
    one = fabric(OVER_SPINES)
    for target, unit in ((5, 1), (2, 0)):
        path = one.gpu_to_gpu(Port(1, 3), Port(target, 6))
        assert names(one, path) == [
            "node 1 NIC tx rail 3",
            "unit 0 leaf 3 up",
            f"unit {unit} leaf 6 down",
            f"node {target} NIC rx rail 6",
        ]
        assert path.latency_ps == one.cluster.latency_ps(3, 8 * unit + 6)


def test_another_rail_without_gpudirect_leaves_from_the_gpu_that_it_was_handed_to(fabric):
    one = fabric(NO_GPUDIRECT)
    path = one.gpu_to_gpu(Port(1, 3), Port(2, 6))
    assert names(one, path) == [
        f"node 1 {NVLINK} tx rail 3",
        f"node 1 {NVLINK} rx rail 6",
        f"node 1 {PCIE} up rail 6",
        "node 1 host memory",
        "node 1 host memory",
        "node 1 RDMA from host memory",
        "node 1 NIC tx rail 6",
        "node 2 NIC rx rail 6",
        "node 2 host memory",
        "node 2 host memory",
        f"node 2 {PCIE} down rail 6",
    ]


def test_write_back_to_host_memory(fabric):
    one = fabric()
    path = one.gpu_to_dram(Port(1, 3))
    assert names(one, path) == [f"node 1 {PCIE} up rail 3", "node 1 host memory"]
    host = one.cluster.host[1]
    assert rate(path) == pytest.approx(host.effective_bytes_per_s)
    assert path.latency_ps == host.endpoint_latency_ps + host.latency_ps


def test_from_host_memory_of_its_own_node(fabric):
    one = fabric()
    path = one.dram_to_gpu(1, Port(1, 3))
    assert names(one, path) == ["node 1 host memory", f"node 1 {PCIE} down rail 3"]
    assert rate(path) == pytest.approx(one.cluster.host[1].effective_bytes_per_s)


def test_from_host_memory_of_another_node(fabric):
    one = fabric()
    path = one.dram_to_gpu(1, Port(5, 3))
    assert names(one, path) == [
        "node 1 host memory",
        "node 1 RDMA from host memory",
        "node 1 NIC tx rail 3",
        "unit 0 leaf 3 up",
        "unit 1 leaf 3 down",
        "node 5 NIC rx rail 3",
    ]


def test_host_memory_sends_less_than_all_nics_could(fabric):
    """222 GB/s were measured on eight rails of 49.5: the last link of which a node has only one."""
    one = fabric()
    flows = [Rated(one.dram_to_gpu(1, Port(5, rail)).links) for rail in range(8)]
    solver = MaxMin()
    for flow in flows:
        solver.add(flow)
    cap = one.cluster.types[1].dram_rdma_bytes_per_s
    assert cap == 222e9
    assert sum(flow.rate for flow in flows) * 1e12 == pytest.approx(cap)
    assert {flow.bottleneck.id for flow in flows} == {
        number for number, link in enumerate(one.described) if link.kind == "dram_rdma"
    }


def test_where_nothing_was_measured_host_memory_and_nics_are_the_only_limits(fabric):
    one = fabric(("dgx-b200", "dgx-a100"))
    assert one.cluster.types[1].dram_rdma_bytes_per_s is None
    path = one.dram_to_gpu(1, Port(2, 3))
    assert names(one, path) == ["node 1 host memory", "node 1 NIC tx rail 3", "node 2 NIC rx rail 3"]


def test_from_host_memory_of_another_node_without_gpudirect_through_host_memory_there(fabric):
    one = fabric(NO_GPUDIRECT)
    assert names(one, one.dram_to_gpu(1, Port(2, 3)))[-3:] == [
        "node 2 host memory",
        "node 2 host memory",
        f"node 2 {PCIE} down rail 3",
    ]


def test_write_back_to_host_memory_of_another_node(fabric):
    one = fabric()
    path = one.gpu_to_dram(Port(1, 3), 5)
    assert names(one, path) == [
        "node 1 NIC tx rail 3",
        "unit 0 leaf 3 up",
        "unit 1 leaf 3 down",
        "node 5 NIC rx rail 3",
        "node 5 host memory",
    ]
    assert rate(path) == pytest.approx(one.cluster.rate_bytes_per_s)
    assert path.latency_ps == one.cluster.latency_ps(3, 8 + 3)
    assert one.gpu_to_dram(Port(1, 3), 1) == one.gpu_to_dram(Port(1, 3))


def test_write_back_to_another_node_without_gpudirect_through_host_memory_here(fabric):
    one = fabric(NO_GPUDIRECT)
    path = one.gpu_to_dram(Port(1, 3), 2)
    assert names(one, path) == [
        f"node 1 {PCIE} up rail 3",
        "node 1 host memory",
        "node 1 host memory",
        "node 1 RDMA from host memory",
        "node 1 NIC tx rail 3",
        "node 2 NIC rx rail 3",
        "node 2 host memory",
    ]
    host = one.cluster.host[1]
    assert path.latency_ps == one.cluster.latency_ps(3, 3) + host.endpoint_latency_ps + host.latency_ps


@pytest.mark.parametrize("changes", [(), (NO_GPUDIRECT,)], ids=["gpudirect", "without"])
def test_between_host_memories_over_the_nics_of_a_lane(fabric, changes):
    one = fabric(*changes)
    path = one.dram_to_dram(1, 5, 3)
    assert names(one, path) == [
        "node 1 host memory",
        "node 1 RDMA from host memory",
        "node 1 NIC tx rail 3",
        "unit 0 leaf 3 up",
        "unit 1 leaf 3 down",
        "node 5 NIC rx rail 3",
        "node 5 host memory",
    ]
    assert rate(path) == pytest.approx(one.cluster.rate_bytes_per_s)
    assert path.latency_ps == one.cluster.latency_ps(3, 8 + 3)


def test_all_lanes_together_send_from_memory_to_memory_what_hosts_were_seen_to_send(fabric):
    one = fabric(lanes=8)
    assert rate(one.dram_to_dram(1, 5, 0)) == pytest.approx(222e9)


def test_from_nvme_with_gpudirect_storage(fabric):
    one = fabric()
    path = one.nvme_to_gpu(1, Port(1, 3))
    assert names(one, path) == ["node 1 NVMe", f"node 1 {PCIE} down rail 3"]
    nvme = one.cluster.types[1].nvme_bytes_per_s
    assert rate(path) == pytest.approx(min(nvme, one.cluster.host[1].effective_bytes_per_s))


def test_from_nvme_through_host_memory(fabric):
    """In and out: two crossings, and all GPUs together share what one NVMe of the node gives."""
    one = fabric()
    path = one.nvme_to_gpu(1, Port(1, 3), gpudirect_storage=False)
    assert names(one, path) == [
        "node 1 NVMe",
        "node 1 host memory",
        "node 1 host memory",
        f"node 1 {PCIE} down rail 3",
    ]


def test_to_nvme_with_gpudirect_storage(fabric):
    """The drives of a node take in 33.8 GB/s, which one GPU's PCIe could fill."""
    one = fabric()
    path = one.gpu_to_nvme(Port(1, 3))
    assert names(one, path) == [f"node 1 {PCIE} up rail 3", "node 1 NVMe writes", "node 1 NVMe"]
    assert one.cluster.types[1].nvme_write_bytes_per_s == 33.8e9
    assert rate(path) == pytest.approx(33.8e9)


def test_to_nvme_through_host_memory(fabric):
    one = fabric()
    path = one.gpu_to_nvme(Port(1, 3), gpudirect_storage=False)
    assert names(one, path) == [
        f"node 1 {PCIE} up rail 3",
        "node 1 host memory",
        "node 1 host memory",
        "node 1 NVMe writes",
        "node 1 NVMe",
    ]


def test_between_nvme_and_host_memory(fabric):
    one = fabric()
    fetched, written = one.nvme_to_dram(1), one.dram_to_nvme(1)
    assert names(one, fetched) == ["node 1 NVMe", "node 1 host memory"]
    assert names(one, written) == ["node 1 host memory", "node 1 NVMe writes", "node 1 NVMe"]
    assert one.cluster.types[1].nvme_bytes_per_s == 50e9
    assert rate(fetched) == pytest.approx(50e9)
    assert rate(fabric().dram_to_nvme(1)) == pytest.approx(33.8e9)


def test_reads_and_writes_share_the_drives(fabric):
    """Of 50 GB/s each gets a half: less than what the drives could take in."""
    one = fabric()
    flows = [Rated(path.links) for path in (one.nvme_to_dram(1), one.dram_to_nvme(1))]
    solver = MaxMin()
    for flow in flows:
        solver.add(flow)
    assert [flow.rate * 1e12 for flow in flows] == pytest.approx([25e9, 25e9])


def test_where_it_is_not_known_what_drives_take_in_they_write_as_they_read(fabric):
    one = fabric(("dgx-b200", "vera-rubin-tray"), ("rails: 8", "rails: 4"))
    assert one.cluster.types[1].nvme_write_bytes_per_s is None
    assert names(one, one.dram_to_nvme(1)) == ["node 1 host memory", "node 1 NVMe"]


def test_where_there_is_no_nvme_there_is_no_path_from_it_or_to_it(fabric):
    one = fabric(text=shipped("mooncake-a800-16.yaml"))
    assert one.cluster.types[0].nvme_bytes_per_s is None
    for path in (
        lambda: one.nvme_to_gpu(0, Port(0, 0)),
        lambda: one.gpu_to_nvme(Port(0, 0)),
        lambda: one.nvme_to_dram(0),
        lambda: one.dram_to_nvme(0),
    ):
        with pytest.raises(UnsupportedError):
            path()


def test_lanes_of_several_rails_are_as_many_times_as_wide(fabric):
    narrow, wide = fabric(), fabric(lanes=4)
    for kind in (
        lambda one: one.gpu_to_gpu(Port(1, 0), Port(2, 0)),
        lambda one: one.gpu_to_gpu(Port(1, 0), Port(1, 1)),
        lambda one: one.gpu_to_dram(Port(1, 0)),
    ):
        assert rate(kind(wide)) == pytest.approx(4 * rate(kind(narrow)))


def test_two_gpus_that_share_a_nic_share_a_port(fabric):
    """Eight A800 and four NICs: a lane has two GPUs with their PCIe and NVLink, and one NIC."""
    one = fabric(text=shipped("mooncake-a800-16.yaml"))
    cluster = one.cluster
    assert rate(one.gpu_to_dram(Port(1, 3))) == pytest.approx(2 * cluster.host[1].effective_bytes_per_s)
    assert rate(one.gpu_to_gpu(Port(1, 3), Port(1, 2))) == pytest.approx(
        2 * cluster.local[1].effective_bytes_per_s
    )
    assert rate(one.gpu_to_gpu(Port(1, 3), Port(2, 3))) == pytest.approx(cluster.rate_bytes_per_s)


def test_several_nics_on_a_rail_are_one_link(fabric):
    """Four NICs of 100 Gb/s beside each GPU of a p5."""
    text = shipped("h100-2048-efa.yaml")
    one = fabric(text=text)
    per_rail = one.cluster.types[0].nics // one.cluster.rails
    path = one.gpu_to_gpu(Port(0, 1), Port(1, 1))
    assert rate(path) == pytest.approx(per_rail * one.cluster.rate_bytes_per_s)


@pytest.fixture(scope="module")
def racks(tmp_path_factory):
    return cluster_of(tmp_path_factory.mktemp("racks"), shipped("gb200-nvl72-4032.yaml"))


def test_a_rack_of_nvl72_is_one_nvlink_domain(racks):
    one = Fabric(racks, 1)
    path = one.gpu_to_gpu(Port(0, 1), Port(17, 3))
    title = racks.local[0].title
    assert names(one, path) == [f"node 0 {title} tx rail 1", f"node 17 {title} rx rail 3"]
    assert rate(path) == pytest.approx(racks.local[0].effective_bytes_per_s)
    assert path.latency_ps == racks.local[0].endpoint_latency_ps + racks.local[0].latency_ps


def test_from_rack_to_rack_over_the_fabric(racks):
    one = Fabric(racks, 1)
    path = one.gpu_to_gpu(Port(0, 1), Port(18, 1))
    assert names(one, path) == [
        "node 0 NIC tx rail 1",
        "unit 0 leaf 1 up",
        "unit 1 leaf 1 down",
        "node 18 NIC rx rail 1",
    ]
    assert rate(path) == pytest.approx(racks.rate_bytes_per_s)


def test_a_tray_reads_host_memory_over_its_own_link(racks):
    one = Fabric(racks, 1)
    path = one.dram_to_gpu(3, Port(3, 2))
    assert names(one, path) == ["node 3 host memory", f"node 3 {racks.host[3].title} down rail 2"]
    assert rate(path) == pytest.approx(racks.host[3].effective_bytes_per_s)


def test_without_a_fabric_a_replica_has_the_nvlink_of_its_own_gpus(fabric):
    """Four GPUs to four others of a node: four times what one gets, whatever else the node has."""
    cluster = fabric(text=shipped("one-dgx-b200.yaml")).cluster
    pools = [Pool(name=role, role=role, replicas=1, tp=4) for role in ("prefill", "decode")]
    (prefill,), (decode,) = seat(cluster, pools)
    one = Fabric(cluster, lanes(cluster, pools))
    pairs = dict.fromkeys(zip(prefill.ports, decode.ports, strict=True))
    together = sum(rate(one.gpu_to_gpu(*pair)) for pair in pairs)
    assert together == pytest.approx(4 * cluster.local[0].effective_bytes_per_s)


SHARED_LEAVES = ("  rails: 8", "  rails: 8\n  rails_per_leaf: 4")


@pytest.mark.parametrize(
    ("target", "between"),
    [(2, []), (5, ["unit 0 leaf 0 up", "unit 1 leaf 0 down"])],
    ids=["leaf", "spines"],
)
def test_another_rail_of_the_same_leaves_needs_no_nvlink(fabric, target, between):
    """Rails 0 to 3 share a leaf in each unit: a NIC reaches those of rail 3 as it does those of rail 1."""
    one = fabric(SHARED_LEAVES)
    path = one.gpu_to_gpu(Port(1, 1), Port(target, 3))
    assert names(one, path) == ["node 1 NIC tx rail 1", *between, f"node {target} NIC rx rail 3"]
    assert path.latency_ps == one.gpu_to_gpu(Port(1, 1), Port(target, 1)).latency_ps
    assert one.wait_ps(Port(1, 1), Port(target, 3)) == path.latency_ps


def test_another_rail_of_other_leaves_takes_nvlink(fabric):
    one = fabric(SHARED_LEAVES)
    path = one.gpu_to_gpu(Port(1, 1), Port(2, 4))
    assert names(one, path) == [
        f"node 1 {NVLINK} tx rail 1",
        f"node 1 {NVLINK} rx rail 4",
        "node 1 NIC tx rail 4",
        "node 2 NIC rx rail 4",
    ]


def test_another_rail_of_the_same_leaf_without_gpudirect(fabric):
    one = fabric(SHARED_LEAVES, NO_GPUDIRECT)
    path = one.gpu_to_gpu(Port(1, 1), Port(2, 3))
    assert not any(NVLINK in name for name in names(one, path))
    assert names(one, path)[0] == f"node 1 {PCIE} up rail 1"
    assert path.latency_ps == one.gpu_to_gpu(Port(1, 1), Port(2, 1)).latency_ps


def test_a_pair_back_to_back_has_no_leaf_to_share(fabric):
    one = fabric(text=shipped("two-dgx-b200-direct.yaml"))
    assert names(one, one.gpu_to_gpu(Port(0, 1), Port(1, 3)))[0] == f"node 0 {NVLINK} tx rail 1"
