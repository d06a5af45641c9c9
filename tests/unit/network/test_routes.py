"""Ways between places, link by link, with rates and latencies that can be worked out by hand."""

import pytest
from models.clusters import B200_4000, SMALL, changed, cluster_of, routed

from sim.base.errors import ConfigError
from sim.cli.way import way as way_between
from sim.clock import Clock
from sim.network.fabric import Fabric, Port
from sim.network.flows import FlowNetwork
from sim.network.parts import dealt
from sim.topology.place import Place, place

DIRECT = (B200_4000.parent / "two-dgx-b200-direct.yaml").read_text()
NVLINK, PCIE = "NVLink 5 through NVSwitch", "PCI Express 5.0 x16"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    return cluster_of(tmp_path_factory.mktemp("large"), B200_4000.read_text())


def way(cluster, one, other):
    return way_between(cluster, place(cluster, one), place(cluster, other))


def links(found):
    return [(link.name, link.cables) for link in found.links]


def test_nodes_in_different_pods(cluster):
    found = way(cluster, "0", "499")
    assert links(found) == [
        ("node 0 NIC tx", 8),
        ("unit 0 leaf 0 to unit 0 leaf 7 up", 8 * 32),
        ("pod 0 spines up", 32 * 32),
        ("pod 3 spines down", 32 * 32),
        ("unit 15 leaf 0 to unit 15 leaf 7 down", 8 * 32),
        ("node 499 NIC rx", 8),
    ]
    link = cluster.link
    assert {crossed.link for crossed in found.links} == {link.name}
    assert found.bytes_per_s == pytest.approx(8 * link.effective_bytes_per_s)
    assert found.held_back_by == "node 0 NIC tx"
    assert found.latency_ps == link.endpoint_latency_ps + 5 * link.latency_ps
    assert found.equal_bytes == round(found.latency_ps * found.bytes_per_s / 1e12)


@pytest.mark.parametrize(
    ("one", "other", "words", "switches"),
    [
        ("0", "31", "over one leaf", 1),
        ("0", "32", "over the spines", 3),
        ("0", "128", "over the cores", 5),
        ("dgx/7", "dgx/8", "over one leaf", 1),
        ("3", "3", "within a node", 0),
    ],
)
def test_how_far_apart(cluster, one, other, words, switches):
    found = way(cluster, one, other)
    assert (found.way, found.latency.switches) == (words, switches)


def test_a_gpu_uses_its_own_rail(cluster):
    """GPU 3 of node 0 and of node 1: NIC to leaf to NIC on rail 3."""
    found = way(cluster, "gpu 3", "gpu 11")
    assert links(found) == [("node 0 NIC tx rail 3", 1), ("node 1 NIC rx rail 3", 1)]
    assert found.bytes_per_s == pytest.approx(cluster.rate_bytes_per_s)


@pytest.mark.parametrize(("one", "other"), [("gpu 3", "1"), ("0", "gpu 11")])
def test_between_a_node_and_a_gpu_only_the_rail_of_the_gpu_is_used(cluster, one, other):
    found = way(cluster, one, other)
    assert links(found) == [("node 0 NIC tx rail 3", 1), ("node 1 NIC rx rail 3", 1)]


def test_another_rail_is_reached_over_nvlink_first(cluster):
    found = way(cluster, "gpu 0", "gpu 11")
    assert links(found) == [
        (f"node 0 {NVLINK} tx rail 0", 1),
        (f"node 0 {NVLINK} rx rail 3", 1),
        ("node 0 NIC tx rail 3", 1),
        ("node 1 NIC rx rail 3", 1),
    ]
    local, link = cluster.local[0], cluster.link
    assert (found.latency.inside, found.latency.inside_ps) == (local.name, local.latency_ps)
    assert found.latency_ps == link.endpoint_latency_ps + link.latency_ps + local.latency_ps


def test_another_rail_over_the_spines(tmp_path):
    spine = cluster_of(tmp_path, changed(SMALL, ("rails: 8", "rails: 8\n  other_rail: spine")))
    found = way(spine, "gpu 0", "gpu 11")
    assert links(found) == [
        ("node 0 NIC tx rail 0", 1),
        ("unit 0 leaf 0 up", 4),
        ("unit 0 leaf 3 down", 4),
        ("node 1 NIC rx rail 3", 1),
    ]
    assert (found.latency.switches, found.latency.inside_ps) == (3, 0)


def test_another_rail_of_a_shared_leaf_takes_no_nvlink(tmp_path):
    shared = cluster_of(tmp_path, changed(SMALL, ("rails: 8", "rails: 8\n  rails_per_leaf: 8")))
    found = way(shared, "gpu 0", "gpu 11")
    assert links(found) == [("node 0 NIC tx rail 0", 1), ("node 1 NIC rx rail 3", 1)]
    assert (found.way, found.latency.inside_ps) == ("over one leaf", 0)


def test_without_gpudirect_bytes_pass_through_host_memory_at_both_ends(tmp_path):
    """Eight rails are 396 GB/s and eight times PCIe 438, but hosts were seen to send 222."""
    staged = cluster_of(tmp_path, changed(SMALL, ("rails: 8", "rails: 8\n  gpudirect: false")))
    found, kind, host = way(staged, "0", "1"), staged.types[0], staged.host[0]
    assert [(link.name, link.cables, link.times) for link in found.links] == [
        (f"node 0 {PCIE} up", 8, 1),
        ("node 0 host memory", 1, 2),
        ("node 0 RDMA from host memory", 1, 1),
        ("node 0 NIC tx", 8, 1),
        ("node 1 NIC rx", 8, 1),
        ("node 1 host memory", 1, 2),
        (f"node 1 {PCIE} down", 8, 1),
    ]
    memory = [link.bytes_per_s for link in found.links if link.kind == "dram"]
    assert memory == [kind.dram_bytes_per_s / 2] * 2
    assert found.bytes_per_s == pytest.approx(kind.dram_rdma_bytes_per_s)
    assert found.held_back_by == "node 0 RDMA from host memory"
    assert found.latency.host_ps == 2 * (host.endpoint_latency_ps + host.latency_ps)


def test_thin_tiers_hold_back(tmp_path):
    """One uplink from each of eight leaves, at 80 %."""
    text = changed(
        SMALL,
        ("radix: 64, uplinks: 4}", "radix: 64, uplinks: 1}"),
        ("per_pod: 4", "per_pod: 1"),
        ("uplinks: 8}", "uplinks: 4}\n  routing: {efficiency: 80 %}"),
    )
    thin = cluster_of(tmp_path, text)
    assert way(thin, "0", "4").bytes_per_s == pytest.approx(0.8 * 8 * thin.rate_bytes_per_s)
    assert way(thin, "0", "1").bytes_per_s == pytest.approx(8 * thin.rate_bytes_per_s)
    assert way(thin, "0", "8").bytes_per_s == pytest.approx(0.8 * 4 * thin.rate_bytes_per_s)
    assert [link.cables for link in way(thin, "0", "4").links] == [8, 8, 8, 8]


def test_of_unequal_queue_pairs_the_slowest_counts(tmp_path):
    """Three queue pairs of a rail whose leaves have one cable: they share it and the NIC, a third each."""
    routing = "rails: 8\n  routing: {kind: ecmp, qps: 3}"
    text = changed(
        SMALL,
        ("rails: 8", routing),
        ("radix: 64, uplinks: 4}", "radix: 64, uplinks: 1}"),
        ("per_pod: 4", "per_pod: 1"),
    )
    thin = cluster_of(tmp_path, text)
    found = way(thin, "gpu 0", "gpu 32")
    assert links(found) == [
        ("node 0 NIC tx rail 0", 1),
        ("unit 0 leaf 0 to pod 0 spine 0", 1),
        ("pod 0 spine 0 to unit 1 leaf 0", 1),
        ("node 4 NIC rx rail 0", 1),
    ]
    assert found.bytes_per_s == pytest.approx(thin.rate_bytes_per_s)


@pytest.mark.parametrize("rails", [[5], range(8)], ids=["GPUs", "nodes"])
def test_pooled_queue_pairs_all_work_until_the_last_byte(tmp_path, rails):
    """On cables of a quarter of a NIC some queue pairs share one: split, the transfer waits for them."""
    found = {}
    for kind in ("split", "pooled"):
        routing = f"rails: 8\n  routing: {{kind: ecmp, qps: 4, bytes: {kind}, efficiency: 25 %}}"
        cluster = cluster_of(tmp_path, changed(SMALL, ("rails: 8", routing)))
        ends = (f"gpu {rails[0]}", f"gpu {32 + rails[0]}") if len(rails) == 1 else ("0", "4")
        found[kind] = way(cluster, *ends).bytes_per_s
        fabric, clock = Fabric(cluster, 1), Clock()
        parts = []
        for rail in rails:
            paths = [fabric.gpu_to_gpu(Port(0, rail), Port(4, rail), pair) for pair in range(4)]
            parts += dealt(4 * 10**9, paths, kind == "pooled")
        FlowNetwork(clock, fabric.table.carried).send(parts)
        while clock.advance(100):
            pass
        assert found[kind] == pytest.approx(len(rails) * 4e9 / (clock.now / 1e12))
    assert found["pooled"] > 1.2 * found["split"]


def test_hashed_rails_of_nodes_are_counted_together(tmp_path):
    hashed = routed(tmp_path, "{kind: ecmp}")
    found = way(hashed, "0", "40")
    assert [(link.kind, link.links, link.cables) for link in found.links] == [
        ("nic_tx", 8, 8),
        ("leaf_up", 8, 8),
        ("leaf_down", 8, 8),
        ("nic_rx", 8, 8),
    ]
    assert found.bytes_per_s == pytest.approx(8 * hashed.rate_bytes_per_s)


def test_fibre_takes_time(tmp_path):
    lengths = "rails: 8\n  cables: {node_leaf: 4 m, leaf_spine: 25 m}"
    found = way(cluster_of(tmp_path, changed(SMALL, ("rails: 8", lengths))), "0", "4")
    assert (found.latency.fibre_m, found.latency.fibre_ps) == (58.0, 58 * 5000)


def test_two_nodes_back_to_back(tmp_path):
    found = way(cluster_of(tmp_path, DIRECT), "0", "1")
    assert (found.way, links(found)) == ("NIC to NIC", [("node 0 NIC tx", 8), ("node 1 NIC rx", 8)])


def test_within_a_domain_of_several_nodes(tmp_path):
    joined = cluster_of(tmp_path, changed(SMALL, ("count: 12", "count: 12, domain_nodes: 3")))
    local = joined.local[0]
    found = way(joined, "gpu 0", "gpu 23")
    assert found.way == "within an NVLink domain"
    assert links(found) == [(f"node 0 {NVLINK} tx rail 0", 1), (f"node 2 {NVLINK} rx rail 7", 1)]
    assert found.bytes_per_s == pytest.approx(local.effective_bytes_per_s)
    assert found.latency_ps == local.endpoint_latency_ps + local.latency_ps
    assert way(joined, "0", "1").bytes_per_s == pytest.approx(8 * local.effective_bytes_per_s)
    assert way(joined, "2", "3").way == "over one leaf"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("17", Place(17, None, "node 17")),
        ("dgx/17", Place(17, None, "node 17")),
        ("gpu 17", Place(2, 1, "GPU 17")),
        ("gpu:17", Place(2, 1, "GPU 17")),
        ("gpu17", Place(2, 1, "GPU 17")),
    ],
)
def test_places(cluster, text, expected):
    assert place(cluster, text) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("500", "there is no node 500: b200-4000-ib-ndr has 500"),
        ("gpu 4000", "there is no GPU 4000: b200-4000-ib-ndr has 4000"),
        ("dgx/500", "there is no node 500: dgx has 500"),
        ("dxg/0", "there is no group of nodes 'dxg'"),
        ("here", "is no node and no GPU"),
        ("-1", "there is no node -1: b200-4000-ib-ndr has 500"),
        ("gpu -1", "there is no GPU -1: b200-4000-ib-ndr has 4000"),
        ("1-2", "is no node and no GPU"),
    ],
)
def test_places_that_are_not_there(cluster, text, problem):
    with pytest.raises(ConfigError) as caught:
        place(cluster, text)
    assert caught.value.problem == problem
    assert caught.value.hint


def test_ways_that_do_not_exist(cluster, tmp_path):
    with pytest.raises(ConfigError, match="both ends are the same GPU"):
        way(cluster, "gpu 3", "gpu 3")
    apart = cluster_of(tmp_path, SMALL[: SMALL.index("fabric:")])
    with pytest.raises(ConfigError, match="there is no fabric"):
        way(apart, "0", "1")
