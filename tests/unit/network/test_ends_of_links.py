"""What each link joins, held to the graph of the fabric: it carries what the cables between its ends do."""

from itertools import product
from random import Random

import pytest
from models.clusters import SMALL, changed, cluster_of, routed

from sim.network.fabric import Fabric, Port
from sim.tables.uses import NOWHERE, Ends
from sim.topology.graph import of_tier

NAMES = ("nodes", "leaves", "spines", "cores")


def crossed(cluster, lanes):
    """A fabric over which ports drawn at random have sent to each other."""
    fabric, random = Fabric(cluster, lanes, seed=3), Random(5)
    for _ in range(300):
        source, target = random.sample(range(len(cluster.types)), 2)
        group = random.randrange(fabric.groups)
        fabric.gpu_to_gpu(Port(source, group), Port(target, group), random.randrange(4))
    return fabric


def cables_between(cluster, ends):
    """All cables between some ends, counted in the graph; at nodes only those of their rails."""
    lower, upper = next(
        (tier, tier + 1) for tier in range(3) if getattr(ends, NAMES[tier]) and getattr(ends, NAMES[tier + 1])
    )
    lows, highs = of_tier(cluster.graph, lower), of_tier(cluster.graph, upper)
    found = 0.0
    for low, high in product(getattr(ends, NAMES[lower]), getattr(ends, NAMES[upper])):
        edge = cluster.graph.get_edge_data(lows[low], highs[high])
        if edge is not None:
            rails = edge.get("rails", ())
            shared = len(set(rails) & set(ends.rails)) / len(rails) if rails else 1
            found += edge["cables"] * shared
    return found


@pytest.mark.parametrize("lanes", [1, 2, 4, 8])
@pytest.mark.parametrize("topology", ["b200-4000-ib-2to1", "b200-4000-efa", "a100-sxm-1024-hdr"])
def test_a_link_carries_what_all_cables_between_its_ends_do(tmp_path, topology, lanes):
    cluster = routed(tmp_path, "{kind: spray, efficiency: 90 %}", topology)
    fabric = crossed(cluster, lanes)
    kinds = {link.kind.partition("_")[0] for link in fabric.described}
    assert kinds >= {"nic", "leaf"} | ({"spine"} if topology.startswith("b200") else set())
    for link in fabric.described:
        if link.kind.startswith("nvlink"):
            assert (len(link.ends.nodes), link.ends.leaves) == (1, ())
            continue
        efficiency = 1.0 if link.kind.startswith("nic") else 0.9
        rate = cables_between(cluster, link.ends) * cluster.rate_bytes_per_s * efficiency
        assert link.capacity_bytes_per_s == pytest.approx(rate), link.name


@pytest.mark.parametrize("routing", ["{kind: ecmp, qps: 2}", "{kind: static}", "{kind: ar_flow}"])
def test_hashed_links_are_single_cables_between_two_switches(tmp_path, routing):
    cluster = cluster_of(tmp_path, SMALL + f"  routing: {routing}\n")
    fabric = crossed(cluster, 1)
    for place, number in fabric.table._ids.items():
        link = fabric.described[number]
        if link.kind.startswith(("leaf", "spine")):
            kind, lower, upper, cable = place
            expected = {"leaf": Ends(leaves=(lower,), spines=(upper,))}
            expected["spine"] = Ends(spines=(lower,), cores=(upper,))
            assert link.ends == expected[kind.partition("_")[0]]
            assert cable < cables_between(cluster, link.ends)


def test_ends_of_what_is_in_a_node_and_of_cables_without_a_switch(tmp_path):
    text = changed(SMALL[: SMALL.index("fabric:")], ("count: 12", "count: 2"))
    cluster = cluster_of(tmp_path, text + "fabric: {kind: direct, link: infiniband-ndr, rails: 8}\n")
    fabric = Fabric(cluster, 4)
    fabric.gpu_to_gpu(Port(0, 1), Port(1, 1))
    fabric.gpu_to_dram(Port(1, 0))
    ends = {link.name: link.ends for link in fabric.described}
    assert ends["node 0 NIC tx rails 4-7"] == Ends((0,), (4, 5, 6, 7))
    assert ends["node 1 host memory"] == Ends((1,))
    assert all(found != NOWHERE for name, found in ends.items() if "copy engine" not in name)
