"""One cable for each flow at every switch: which, on what that depends, and that it is a way at all."""

from collections import Counter
from random import Random

import networkx as nx
import pytest
from models.clusters import SMALL, changed, cluster_of, routed
from scipy.stats import chisquare

from sim.clock import Clock
from sim.config.scenario import Pool
from sim.network.fabric import Fabric, Port
from sim.network.flows import FlowNetwork
from sim.serving.seating import lanes

KINDS = ["{kind: ecmp}", "{kind: ecmp, qps: 4}", "{kind: static}", "{kind: ar_flow}"]
BY_CHANCE = 1e-6
"""What a chi-square test may find at worst, so that an even spread hardly ever fails."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A cluster of the repository with a routing, built once."""
    found = {}

    def find(routing, topology="b200-4000-ib-ndr"):
        key = routing, topology
        if key not in found:
            found[key] = routed(tmp_path_factory.mktemp("routed"), *key)
        return found[key]

    return find


def drawn(seed, count, rails=8, nodes=500):
    """Flows between different nodes on one rail: (source, target, queue pair)."""
    dice = Random(seed)
    ends = [(*dice.sample(range(nodes), 2), dice.randrange(rails), dice.randrange(4)) for _ in range(count)]
    return [(Port(one, rail), Port(to, rail), pair) for one, to, rail, pair in ends]


def names(fabric, path):
    return [fabric.described[i].name for i in path.counted]


def ways(fabric, flows):
    return {flow: names(fabric, fabric.gpu_to_gpu(*flow)) for flow in flows}


def occupy(fabric, flow):
    """The path of a flow, which stays on its links for good."""
    path = fabric.gpu_to_gpu(*flow)
    for link in path.links:
        link.flows[flow] = 1
    return path


def cables(fabric, path):
    """(from, to, which of the parallel ones) of every cable between switches, as vertices of the graph."""
    vertices = {facts["name"]: vertex for vertex, facts in fabric.cluster.graph.nodes(data=True)}
    found = []
    for name in names(fabric, path)[1:-1]:
        ends, _, cable = name.partition(" cable ")
        lower, upper = ends.split(" to ")
        found.append((vertices[lower], vertices[upper], int(cable or 0)))
    return found


@pytest.mark.parametrize("topology", ["b200-4000-ib-ndr", "b200-4000-ib-4to1"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_way_is_a_shortest_one_that_goes_up_and_down_again(cluster, kind, topology):
    one = Fabric(cluster(kind, topology), 1)
    graph = one.cluster.graph
    switches = graph.subgraph([vertex for vertex in graph if vertex[0] != "node"])
    lengths = Counter()
    for source, target, queue_pair in drawn(1, 300):
        path = occupy(one, (source, target, queue_pair))
        first = one.cluster.leaves[one.cluster.leaf_of(*source)].name
        last = one.cluster.leaves[one.cluster.leaf_of(*target)].name
        way = cables(one, path)
        lengths[len(way)] += 1
        if not way:
            assert first == last
            continue
        visited = [way[0][0], *(end for _, end, _ in way)]
        assert [vertex for vertex, _, _ in way] == visited[:-1]
        assert [graph.nodes[vertex]["name"] for vertex in (visited[0], visited[-1])] == [first, last]
        assert len(way) == nx.shortest_path_length(switches, visited[0], visited[-1])
        tiers = [graph.nodes[vertex]["tier"] for vertex in visited]
        assert tiers in ([1, 2, 1], [1, 2, 3, 2, 1])
        assert all(cable < graph.edges[lower, upper]["cables"] for lower, upper, cable in way)
    assert set(lengths) == {0, 2, 4}


@pytest.mark.parametrize("kind", KINDS)
def test_each_cable_carries_what_one_cable_can(cluster, kind):
    one = Fabric(cluster(kind), 1)
    for flow in drawn(2, 200):
        one.gpu_to_gpu(*flow)
    rate = one.cluster.rate_bytes_per_s
    assert {link.capacity_bytes_per_s for link in one.described} == {rate}
    assert all(link.can_saturate for link in one.described)


@pytest.mark.parametrize("kind", KINDS)
def test_parallel_cables_are_told_apart(tmp_path, kind):
    """Two spines for eight uplinks: four cables to each. Chance uses them all."""
    text = changed(
        SMALL,
        ("  rails: 8", f"  rails: 8\n  routing: {kind}"),
        ("uplinks: 4}", "uplinks: 8}"),
        ("per_pod: 4, radix: 64", "per_pod: 2, radix: 80"),
    )
    one = Fabric(cluster_of(tmp_path, text), 1)
    for flow in drawn(3, 6000, nodes=12):
        occupy(one, flow)
    up = {link.name for link in one.described if link.kind == "leaf_up" and "unit 0 leaf 2 " in link.name}
    cables_there = {
        f"unit 0 leaf 2 to pod 0 spine {spine}" + (f" cable {cable}" if cable else "")
        for spine in range(2)
        for cable in range(4)
    }
    assert up <= cables_there if kind == "{kind: static}" else up == cables_there


@pytest.mark.parametrize("kind", KINDS[:3])
def test_ways_depend_neither_on_the_order_of_flows_nor_on_other_flows(cluster, kind):
    flows = drawn(4, 400)
    alone = ways(Fabric(cluster(kind), 1), flows)
    assert ways(Fabric(cluster(kind), 1), list(reversed(flows))) == alone
    crowded = Fabric(cluster(kind), 1)
    for other in drawn(5, 1000):
        occupy(crowded, other)
    assert ways(crowded, flows) == alone


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_history_gives_the_same_ways(cluster, kind):
    assert ways(Fabric(cluster(kind), 1, 7), drawn(6, 300)) == ways(
        Fabric(cluster(kind), 1, 7), drawn(6, 300)
    )


def test_another_seed_is_another_draw(cluster):
    flows = [flow for flow in drawn(7, 400) if flow[0].node // 32 != flow[1].node // 32]
    one, other = (ways(Fabric(cluster(KINDS[0]), 1, seed), flows) for seed in (0, 1))
    same = sum(one[flow][1] == other[flow][1] for flow in flows)
    assert same < len(flows) * 3 / 32  # a 32nd agrees by chance


def test_another_seed_loads_other_cables(cluster):
    """All that one node sends to everyone, counted by cable."""
    counts = []
    for seed in (0, 8):
        one = Fabric(cluster(KINDS[0]), 1, seed)
        paths = [names(one, one.gpu_to_gpu(Port(0, 0), Port(node, 0))) for node in range(128, 384)]
        counts.append(Counter(path[1] for path in paths))
    assert counts[0] != counts[1]


def test_hashing_spreads_evenly_at_every_switch(cluster):
    """Over the spines of a leaf, the cores of a spine given which it is, and the spines above a receiver."""
    one = Fabric(cluster(KINDS[0]), 1)
    up, over, down = Counter(), Counter(), Counter()
    for source in range(32):
        for target in range(128, 500):
            for queue_pair in range(4):
                path = one.gpu_to_gpu(Port(source, 0), Port(target, 0), queue_pair)
                up[path.counted[1]] += 1
                over[path.counted[2]] += 1
                down[path.counted[4], target // 32] += 1
    assert len(up) == 32
    assert chisquare(list(up.values())).pvalue > BY_CHANCE
    assert len(over) == 32 * 32
    assert chisquare(list(over.values())).pvalue > BY_CHANCE
    for unit in range(4, 15):
        here = [count for (_, below), count in down.items() if below == unit]
        assert len(here) == 32
        assert chisquare(here).pvalue > BY_CHANCE


def test_queue_pairs_of_a_transfer_go_their_own_ways(cluster):
    """Of 16 over 32 cables about 12.7 are different: 32 (1 - (31/32) ** 16)."""
    one = Fabric(cluster("{kind: ecmp, qps: 16}"), 1)
    assert one.queue_pairs == 16
    different = []
    for source, target, _ in drawn(8, 300):
        if source.node // 32 != target.node // 32:
            paths = [one.gpu_to_gpu(source, target, number).counted for number in range(16)]
            different.append(len({path[1] for path in paths}))
    assert sum(different) / len(different) == pytest.approx(32 * (1 - (31 / 32) ** 16), abs=0.4)


@pytest.mark.parametrize("kind", KINDS)
def test_rails_are_never_merged(cluster, kind):
    pools = [Pool(name=role, role=role, replicas=4, tp=8) for role in ("prefill", "decode")]
    assert lanes(cluster(kind), pools) == 1
    assert lanes(cluster("{kind: spray}"), pools) == 8


def test_static_ways_depend_on_the_receiver_alone(cluster):
    """One way from a leaf to it, whoever sends by whichever queue pair; one end of it from all leaves."""
    one = Fabric(cluster("{kind: static}"), 1)
    for target in (Port(200, 3), Port(40, 3), Port(499, 3)):
        for unit in (0, 5, 12):
            found = {
                one.gpu_to_gpu(Port(32 * unit + node, 3), target, pair).counted[1:]
                for node in range(20)
                for pair in range(3)
            }
            assert len(found) == 1
    far = {one.gpu_to_gpu(Port(node, 3), Port(499, 3)).counted[-2:] for node in range(0, 384, 32)}
    assert len(far) == 1


def test_static_routing_gives_every_receiver_of_a_leaf_a_cable_of_its_own(cluster):
    """As subnet managers deal out destinations: 32 nodes below a leaf, 32 spines above it."""
    one = Fabric(cluster("{kind: static}"), 1)
    last = Counter(one.gpu_to_gpu(Port(0, 3), Port(node, 3)).counted[-2] for node in range(128, 160))
    assert len(last) == 32


def test_least_loaded_takes_the_emptiest_cable_up(cluster):
    one = Fabric(cluster("{kind: ar_flow}"), 1)
    load = Counter()
    for flow in drawn(9, 1500, rails=1):
        for lower, upper, _ in cables(one, occupy(one, flow)):
            if upper[0] in ("spine", "core") and lower[0] != "core":
                there = [load[lower, other] for other in one.cluster.graph[lower] if other[0] == upper[0]]
                assert load[lower, upper] == min(there)
                load[lower, upper] += 1
    assert max(load.values()) > 2


def test_least_loaded_looks_again_when_flows_have_gone(cluster):
    """Never two on a cable, where each is alone when it starts."""
    one = Fabric(cluster("{kind: ar_flow}"), 1)
    clock = Clock()
    network = FlowNetwork(clock, one.table.carried)
    first = one.gpu_to_gpu(Port(0, 0), Port(200, 0))
    network.send([(1000, first)])
    assert one.gpu_to_gpu(Port(0, 0), Port(200, 0)).counted[1] != first.counted[1]
    while clock.advance(10):
        pass
    assert one.gpu_to_gpu(Port(0, 0), Port(200, 0)) == first


@pytest.mark.parametrize("kind", KINDS)
def test_below_one_leaf_nothing_is_chosen(cluster, kind):
    one = Fabric(cluster(kind), 1)
    assert names(one, one.gpu_to_gpu(Port(3, 5), Port(31, 5), 2)) == [
        "node 3 NIC tx rail 5",
        "node 31 NIC rx rail 5",
    ]
