"""The links between nodes: which a transfer crosses, its latency, and which links may be left out."""

from random import Random

import pytest
from models.clusters import B200_4000, SMALL, changed, cluster_of

from sim.clock import FLOW_START, Clock
from sim.network.fabric import Fabric, Port
from sim.network.flows import FlowNetwork
from sim.network.path import Path

OVERSUBSCRIBED = ("leaf: {radix: 64, uplinks: 32}", "leaf: {radix: 64, uplinks: 8}")
THIN_CORE = ("spine: {per_pod: 32, radix: 64, uplinks: 32}", "spine: {per_pod: 32, radix: 64, uplinks: 2}")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    return cluster_of(tmp_path_factory.mktemp("whole"), B200_4000.read_text())


@pytest.fixture(scope="module")
def blocking(tmp_path_factory):
    text = changed(B200_4000.read_text(), OVERSUBSCRIBED, THIN_CORE)
    return cluster_of(tmp_path_factory.mktemp("blocking"), text)


def names(fabric, path):
    return [fabric.described[i].name for i in path.counted]


def between(fabric, source, target, group=0):
    """The path between nodes on one lane."""
    return fabric.gpu_to_gpu(Port(source, group), Port(target, group))


def whole(cluster, lanes):
    """A fabric with all its links made: every node has sent to itself and to one of another pod."""
    fabric = Fabric(cluster, lanes)
    nodes = len(cluster.types)
    for node in range(nodes):
        for group in range(fabric.groups):
            between(fabric, node, node, group)
            if cluster.fabric:
                between(fabric, node, (node + nodes // 2) % nodes, group)
    return fabric


def test_links_are_made_when_they_are_first_crossed(cluster):
    fabric = Fabric(cluster, 8)
    assert fabric.described == fabric.links == fabric.table.carried == []
    between(fabric, 0, 1)
    nics = [f"node {node} NIC {way}" for node in (0, 1) for way in ("tx", "rx")]
    assert sorted(link.name for link in fabric.described) == sorted(nics)
    between(fabric, 1, 0)
    assert len(fabric.described) == 4
    between(fabric, 2, 1)
    assert len(fabric.described) == len(fabric.links) == 6
    assert fabric.table.carried == [0.0] * 6


def test_all_links_by_kind(cluster):
    fabric = whole(cluster, 8)
    kinds = [link.kind for link in fabric.described]
    assert {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)} == {
        "nvlink_tx": 500,
        "nvlink_rx": 500,
        "nic_tx": 500,
        "nic_rx": 500,
        "leaf_up": 16,
        "leaf_down": 16,
        "spine_up": 4,
        "spine_down": 4,
    }
    assert [link.id for link in fabric.links] == list(range(len(kinds)))


def test_capacities_are_those_of_the_cables(cluster):
    """Rails that are used together are one link; uplinks of a unit and of a pod are one link too."""
    cable = cluster.rate_bytes_per_s
    assert cable <= 50e9
    by_kind = {link.kind: link.capacity_bytes_per_s for link in whole(cluster, 8).described}
    assert by_kind["nic_tx"] == by_kind["nic_rx"] == 8 * cable
    assert by_kind["leaf_up"] == by_kind["leaf_down"] == 8 * 32 * cable
    assert by_kind["spine_up"] == by_kind["spine_down"] == 32 * 32 * cable
    by_kind = {link.kind: link.capacity_bytes_per_s for link in whole(cluster, 2).described}
    assert (by_kind["nic_tx"], by_kind["leaf_up"]) == (2 * cable, 2 * 32 * cable)


def test_routing_efficiency_counts_above_the_leaves_only(tmp_path):
    text = changed(B200_4000.read_text(), ("efficiency: 100 %", "efficiency: 80 %"))
    sprayed = cluster_of(tmp_path, text)
    by_kind = {link.kind: link.capacity_bytes_per_s for link in whole(sprayed, 8).described}
    cable = sprayed.rate_bytes_per_s
    assert by_kind["nic_tx"] == 8 * cable
    assert by_kind["leaf_up"] == pytest.approx(0.8 * 8 * 32 * cable)
    assert by_kind["spine_up"] == pytest.approx(0.8 * 32 * 32 * cable)


@pytest.mark.parametrize(
    ("source", "target", "kinds", "switches"),
    [
        (0, 31, ["nic_tx", "nic_rx"], 1),
        (0, 32, ["nic_tx", "leaf_up", "leaf_down", "nic_rx"], 3),
        (40, 127, ["nic_tx", "leaf_up", "leaf_down", "nic_rx"], 3),
        (0, 499, ["nic_tx", "leaf_up", "spine_up", "spine_down", "leaf_down", "nic_rx"], 5),
        (130, 127, ["nic_tx", "leaf_up", "spine_up", "spine_down", "leaf_down", "nic_rx"], 5),
    ],
    ids=["same unit", "same pod", "same pod, last unit", "another pod", "pods next to each other"],
)
def test_paths_cross_the_right_tiers(cluster, source, target, kinds, switches):
    fabric = Fabric(cluster, 8)
    path = between(fabric, source, target)
    assert [fabric.described[i].kind for i in path.counted] == kinds
    link = cluster.link
    assert link.latency_ps > 0
    assert link.endpoint_latency_ps > 0
    assert path.latency_ps == link.endpoint_latency_ps + switches * link.latency_ps


def test_paths_by_name(cluster):
    fabric = Fabric(cluster, 1)
    assert names(fabric, between(fabric, 3, 499, 5)) == [
        "node 3 NIC tx rail 5",
        "unit 0 leaf 5 up",
        "pod 0 spines up",
        "pod 3 spines down",
        "unit 15 leaf 5 down",
        "node 499 NIC rx rail 5",
    ]
    fabric = Fabric(cluster, 4)
    assert names(fabric, between(fabric, 3, 40, 1)) == [
        "node 3 NIC tx rails 4-7",
        "unit 0 leaf 4 to unit 0 leaf 7 up",
        "unit 1 leaf 4 to unit 1 leaf 7 down",
        "node 40 NIC rx rails 4-7",
    ]


def test_within_a_node_bytes_cross_nvlink_only(cluster):
    fabric = Fabric(cluster, 8)
    path = between(fabric, 7, 7)
    local = cluster.local[7]
    assert names(fabric, path) == [f"node 7 {local.title} tx", f"node 7 {local.title} rx"]
    assert path.latency_ps == local.endpoint_latency_ps + local.latency_ps
    rates = [link.capacity for link in path.links]
    assert rates == pytest.approx([8 * local.effective_bytes_per_s / 1e12] * 2)


def test_a_non_blocking_fabric_leaves_only_the_ends_to_share(cluster):
    fabric = whole(cluster, 8)
    kept = {link.kind for link in fabric.described if link.can_saturate}
    assert kept == {"nvlink_tx", "nvlink_rx", "nic_tx", "nic_rx"}
    path = between(fabric, 0, 499)
    assert [link.id for link in path.links] == [path.counted[0], path.counted[-1]]


def test_an_oversubscribed_tier_is_kept(blocking):
    fabric = whole(blocking, 8)
    kept = {link.kind for link in fabric.described if link.can_saturate}
    assert kept >= {"leaf_up", "leaf_down", "spine_up", "spine_down"}
    path = between(fabric, 0, 499)
    assert [link.id for link in path.links] == list(path.counted)


def up_of(unit):
    """The name of all cables up from a unit."""
    return f"unit {unit} leaf 0 to unit {unit} leaf 7 up"


SPINE = "spine: {per_pod: 32, radix: 64, uplinks: 32}"
LEAF = "leaf: {radix: 64, uplinks: 32}"


def saturating(folder, lanes, line, uplinks):
    """The links up that can saturate, where the leaves or the spines have fewer cables up."""
    text = changed(B200_4000.read_text(), (line, line.replace("uplinks: 32", f"uplinks: {uplinks}")))
    fabric = whole(cluster_of(folder, text), lanes)
    return {link.name for link in fabric.described if link.kind[-3:] == "_up" and link.can_saturate}


@pytest.mark.parametrize(
    ("uplinks", "pods"), [(32, []), (31, [0, 1, 2]), (29, [0, 1, 2]), (28, [0, 1, 2, 3])]
)
def test_what_reaches_spines_are_all_nics_of_their_pod(tmp_path, uplinks, pods):
    """Kept as soon as they lack one cable: 32 x 32 for 128 nodes, 32 x 29 for the 116 of the last pod."""
    assert saturating(tmp_path, 4, SPINE, uplinks) == {f"pod {pod} spines up" for pod in pods}


@pytest.mark.parametrize(("uplinks", "units"), [(32, 0), (31, 15), (20, 15), (19, 16)])
def test_what_reaches_leaves_are_the_nodes_of_their_unit(tmp_path, uplinks, units):
    """20 cables carry what the 20 nodes of the last unit send, so they hold nobody back."""
    assert saturating(tmp_path, 8, LEAF, uplinks) == {up_of(unit) for unit in range(units)}


def test_where_routing_reaches_less_full_units_and_pods_may_saturate(tmp_path):
    text = changed(B200_4000.read_text(), ("efficiency: 100 %", "efficiency: 99 %"))
    fabric = whole(cluster_of(tmp_path, text), 8)
    up = {link.name for link in fabric.described if link.kind[-3:] == "_up" and link.can_saturate}
    assert up == {up_of(unit) for unit in range(15)} | {f"pod {pod} spines up" for pod in range(3)}


class Unpruned:
    """A fabric whose paths keep every link that they cross."""

    def __init__(self, fabric):
        self.fabric = fabric
        self.links = fabric.links
        self.table = fabric.table

    def gpu_to_gpu(self, source, target):
        path = self.fabric.gpu_to_gpu(source, target)
        return Path(tuple(self.links[i] for i in path.counted), path.counted, path.latency_ps)


class EndsOnly(Unpruned):
    """A fabric that is assumed to be non-blocking, whatever it is."""

    def gpu_to_gpu(self, source, target):
        path = super().gpu_to_gpu(source, target)
        return Path((path.links[0], path.links[-1]), path.counted, path.latency_ps)


def drawn(seed, nodes, transfers):
    """Transfers between few nodes of many units, so that they meet: (start, source, target, bytes)."""
    dice = Random(seed)
    start_ps = 0
    found = []
    senders = [dice.randrange(nodes) for _ in range(40)]
    for _ in range(transfers):
        start_ps += dice.randint(0, 2 * 10**8)
        source = dice.choice(senders)
        target = (source + dice.randrange(1, nodes)) % nodes
        found.append((start_ps, source, target, dice.randint(1, 3 * 10**9)))
    return found


def ends(fabric, transfers):
    """When each transfer ends, and the most flows that were ever on the way."""
    clock = Clock()
    network = FlowNetwork(clock, fabric.table.carried)
    found = {}
    most = 0

    def begin(number, size, path):
        def start(_):
            nonlocal most
            done = network.send([(size, path)])
            done.callbacks.append(lambda _: found.setdefault(number, clock.now))
            most = max(most, network.active)

        return start

    for number, (start_ps, source, target, size) in enumerate(transfers):
        path = between(fabric, source, target)
        clock.at(start_ps, FLOW_START + number).callbacks.append(begin(number, size, path))
    while clock.advance(1000):
        pass
    return [found[number] for number in range(len(transfers))], most


@pytest.mark.parametrize("seed", range(3))
def test_links_left_out_change_nothing(cluster, seed):
    transfers = drawn(seed, 500, 400)
    pruned, most = ends(Fabric(cluster, 8), transfers)
    whole, _ = ends(Unpruned(Fabric(cluster, 8)), transfers)
    assert most > 40
    for left_out, kept in zip(pruned, whole, strict=True):
        assert abs(left_out - kept) <= 1 + 1e-12 * kept


@pytest.mark.parametrize("seed", range(3))
def test_links_kept_in_a_blocking_fabric_matter(blocking, seed):
    """Pruned as it is built the fabric is exact; assumed to be non-blocking it is much too fast."""
    transfers = drawn(seed, 500, 400)
    pruned, _ = ends(Fabric(blocking, 8), transfers)
    whole, _ = ends(Unpruned(Fabric(blocking, 8)), transfers)
    assumed, _ = ends(EndsOnly(Fabric(blocking, 8)), transfers)
    for left_out, kept in zip(pruned, whole, strict=True):
        assert abs(left_out - kept) <= 1 + 1e-12 * kept
    assert sum(free < kept for free, kept in zip(assumed, whole, strict=True)) > 40


def ends_over_rails(cluster, lanes):
    """When three transfers over all rails end, where so many rails are one link."""
    fabric, clock, found = Fabric(cluster, lanes), Clock(), {}
    network = FlowNetwork(clock, fabric.table.carried)

    def note(number):
        return lambda _: found.setdefault(number, clock.now)

    for number, (source, target) in enumerate([(0, 4), (0, 9), (1, 9)]):
        size = 8 * 10**9 // fabric.groups
        parts = [(size, between(fabric, source, target, group)) for group in range(fabric.groups)]
        network.send(parts).callbacks.append(note(number))
    while clock.advance(100):
        pass
    return [found[number] for number in range(3)]


OWN_SPINES = ("spine: {per_pod: 4, radix: 64, uplinks: 8}", "spine: {per_rail: 1, radix: 64, uplinks: 2}")


@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_rails_with_spines_of_their_own_may_be_merged(tmp_path, lanes):
    """Their spines are one link then, with the cables of all of them."""
    cluster = cluster_of(tmp_path, changed(SMALL, OWN_SPINES))
    for apart, merged in zip(ends_over_rails(cluster, lanes), ends_over_rails(cluster, 8), strict=True):
        assert abs(apart - merged) <= 1
    fabric = Fabric(cluster, 8)
    assert names(fabric, between(fabric, 0, 9))[1:-1] == [
        "unit 0 leaf 0 to unit 0 leaf 7 up",
        "pods 0 to 7 spines up",
        "pods 8 to 15 spines down",
        "unit 2 leaf 0 to unit 2 leaf 7 down",
    ]
    (up,) = [link for link in fabric.described if link.kind == "spine_up"]
    assert up.capacity_bytes_per_s == pytest.approx(8 * 2 * cluster.rate_bytes_per_s)


@pytest.mark.parametrize("lanes", [1, 2, 4])
def test_symmetric_rails_may_be_merged(tmp_path, lanes):
    """A transfer over eight rails takes the same time whether they are eight links, four, two or one."""
    cluster = cluster_of(tmp_path, SMALL)
    for apart, merged in zip(ends_over_rails(cluster, lanes), ends_over_rails(cluster, 8), strict=True):
        assert abs(apart - merged) <= 1


def test_a_cluster_without_a_fabric_has_nvlink_only(tmp_path):
    text = SMALL[: SMALL.index("fabric:")]
    fabric = whole(cluster_of(tmp_path, text), 0)
    assert {link.kind for link in fabric.described} == {"nvlink_tx", "nvlink_rx"}
    assert len(between(fabric, 3, 3).links) == 2
