"""Fabrics small enough to count by hand: shared leaves, two nodes back to back, cables one by one."""

from pathlib import Path

import pytest
from models.clusters import SMALL, changed, cluster_of
from networkx import is_isomorphic
from topology_texts import DIRECT, HEAD, PLANES, TWO_LEAVES

from sim.base.errors import ConfigErrors
from sim.topology.wiring import NO_LEAF, Hops


def faults(folder, text):
    with pytest.raises(ConfigErrors) as caught:
        cluster_of(folder, text)
    return [(error.key, error.problem) for error in caught.value.errors]


def test_rails_may_share_a_leaf(tmp_path):
    """All eight rails on one leaf of a unit, as of a switch at the top of a rack."""
    text = changed(SMALL, ("rails: 8", "rails: 8\n  rails_per_leaf: 8"), ("uplinks: 4}", "uplinks: 32}"))
    cluster = cluster_of(tmp_path, text)
    assert [leaf.rails for leaf in cluster.leaves] == [tuple(range(8))] * 3
    assert [cluster.leaf_of(node, rail) for node in (0, 4, 11) for rail in (0, 7)] == [0, 0, 1, 1, 2, 2]
    assert [(leaf.down_cables, leaf.up_cables) for leaf in cluster.leaves] == [(32, 32)] * 3
    assert cluster.graph.edges[("node", 0), ("leaf", 0, 0)] == {
        "cables": 8,
        "length_m": 0.0,
        "rails": tuple(range(8)),
    }


def test_fewer_rails_than_nics_are_parallel_nics(tmp_path):
    """Two rails of four NICs each; a leaf has four cables from every node."""
    cluster = cluster_of(tmp_path, changed(SMALL, ("rails: 8", "rails: 2"), ("uplinks: 4}", "uplinks: 16}")))
    assert cluster.nics_on_rail(0) == 4
    assert cluster.rail_bytes_per_s(0) == 4 * cluster.rate_bytes_per_s
    assert {leaf.down_cables for leaf in cluster.leaves} == {4 * 4}


def test_two_nodes_back_to_back(tmp_path):
    cluster = cluster_of(tmp_path, DIRECT)
    assert (cluster.leaves, cluster.spines, cluster.cores) == ((), (), ())
    assert {cluster.leaf_of(node, rail) for node in (0, 1) for rail in range(8)} == {NO_LEAF}
    assert list(cluster.graph.edges(data="cables")) == [(("node", 0), ("node", 1), 8)]
    assert cluster.hops(NO_LEAF, NO_LEAF) == Hops(0, 2.0)
    assert cluster.latency_ps(NO_LEAF, NO_LEAF) == cluster.link.endpoint_latency_ps + 2 * 5000


def test_cables_one_by_one(tmp_path):
    cluster = cluster_of(tmp_path, TWO_LEAVES)
    one, two = cluster.leaves
    assert (one.name, one.nodes, one.rails, one.down_cables) == ("leaf-0", (0, 1), tuple(range(8)), 16)
    assert (two.name, two.nodes, two.unit, two.pod) == ("leaf-1", (2, 3), 1, 0)
    assert one.up == ((0, 4), (1, 4))
    assert cluster.spines_in == {0: (0, 1)}
    assert cluster.pod_up_cables == {0: 0}
    assert [cluster.unit_of(node) for node in range(4)] == [0, 0, 1, 1]


def test_light_takes_5_ns_for_a_metre_of_the_longest_cables(tmp_path):
    cluster = cluster_of(tmp_path, TWO_LEAVES)
    assert cluster.hops(0, 0) == Hops(1, 3.0 + 3.0)
    assert cluster.hops(0, 1) == cluster.hops(1, 0) == Hops(3, 3.0 + 20.0 + 30.0 + 5.0)
    link = cluster.link
    assert cluster.latency_ps(0, 1) == link.endpoint_latency_ps + 3 * link.latency_ps + 58 * 5000


def test_rails_with_spines_of_their_own_are_pods_of_their_own(tmp_path):
    cluster = cluster_of(tmp_path, PLANES)
    assert [(leaf.name, leaf.unit, leaf.pod, leaf.rails) for leaf in cluster.leaves] == [
        ("red-0", 0, 0, (0,)),
        ("red-1", 1, 0, (0,)),
        ("blue-0", 0, 1, (1,)),
        ("blue-1", 1, 1, (1,)),
    ]
    assert [(spine.name, spine.pod) for spine in cluster.spines] == [("red", 0), ("blue", 1)]


def test_listing_what_a_rule_builds_gives_the_same_graph(tmp_path):
    ruled = changed(
        SMALL,
        ("count: 12", "count: 8"),
        (", uplinks: 8}", "}"),
        ("  core: {count: 4, radix: 64}\n", ""),
    )
    switches = [f"{{name: leaf-{unit}-{rail}, tier: 1, radix: 64}}" for unit in (0, 1) for rail in range(8)]
    switches += [f"{{name: spine-{i}, tier: 2, radix: 64}}" for i in range(4)]
    cables = [
        f"{{from: dgx/{4 * unit}-{4 * unit + 3}/{rail}, to: leaf-{unit}-{rail}}}"
        for unit in (0, 1)
        for rail in range(8)
    ]
    cables += [
        f"{{from: leaf-{unit}-{rail}, to: spine-{i}}}"
        for unit in (0, 1)
        for rail in range(8)
        for i in range(4)
    ]
    listed = HEAD.replace("count: 4", "count: 8") + f"  switches: [{', '.join(switches)}]\n"
    listed += f"  cables: [{', '.join(cables)}]\n"
    one, other = cluster_of(tmp_path, ruled), cluster_of(tmp_path, listed)
    keys = ("tier", "unit", "pod", "rails")

    def same(a, b):
        return [a.get(key) for key in keys] == [b.get(key) for key in keys]

    assert is_isomorphic(one.graph, other.graph, node_match=same, edge_match=lambda a, b: a == b)
    assert [(leaf.nodes, leaf.up) for leaf in one.leaves] == [(leaf.nodes, leaf.up) for leaf in other.leaves]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("to: leaf-0, l", "to: lef-0, l", ("cables.0.to", "there is no switch 'lef-0'")),
        ("dgx/0-1", "dxg/0-1", ("cables.0.from", "there is no group of nodes 'dxg'")),
        ("dgx/2-3/", "dgx/2-4/", ("cables.1.to", "there is no node 4: dgx has 4 nodes")),
        ("dgx/2-3/0-7", "dgx/2-3/0-8", ("cables.1.to", "there is no NIC 8: a node of dgx has 8 NICs")),
        ("dgx/2-3/0-7", "dgx/1-3/0-7", ("cables.1", "NIC 0 of dgx/1 has a cable already")),
        (
            "leaf-1, to: dgx/2-3/0-7, ",
            "leaf-1, to: dgx/2-3/0-6, ",
            ("cables", "no cable at rail 7 of dgx/2 and rail 7 of dgx/3"),
        ),
        (
            "from: leaf-0, to: spine-1",
            "from: leaf-0, to: leaf-1",
            ("cables.3", "leaf-0 is on tier 1 and leaf-1 on tier 1"),
        ),
        (
            "from: leaf-0, to: spine-1",
            "from: leaf-0, to: leaf-0",
            ("cables.3", "a cable from leaf-0 to itself"),
        ),
        (
            "leaf-1, to: dgx/2-3/0-7",
            "spine-1, to: dgx/2-3/0-7",
            ("cables.1", "a NIC cannot go to spine-1 on tier 2"),
        ),
        ("from: leaf-0, to: spine-1", "from: dgx/0/0, to: dgx/2/0", ("cables.3", "both ends are NICs")),
        ("length: 5 m", "count: 2", ("cables.1.count", "a NIC has one port, not 2")),
        (
            "leaf-0, tier: 1, radix: 64",
            "leaf-0, tier: 1, radix: 20",
            ("switches.0.radix", "leaf-0 needs 24 ports and has 20"),
        ),
        (
            "tier: 2, radix: 64}\n  cables",
            "tier: 2, radix: 64}\n    - {name: idle, tier: 2, radix: 8}\n  cables",
            ("switches.4", "no cable goes to idle"),
        ),
    ],
)
def test_what_cannot_be_cabled_is_said_at_its_line(tmp_path, old, new, expected):
    text = changed(TWO_LEAVES, (old, new))
    assert (f"fabric.{expected[0]}", expected[1]) in faults(tmp_path, text)


CROSSED = changed(
    PLANES,
    (
        "    - {from: dgx/0-1/0-3, to: red-0}\n",
        "    - {from: dgx/0/0-3, to: red-0}\n    - {from: dgx/1/4-7, to: red-0}\n",
    ),
    (
        "    - {from: dgx/0-1/4-7, to: blue-0}\n",
        "    - {from: dgx/0/4-7, to: blue-0}\n    - {from: dgx/1/0-3, to: blue-0}\n",
    ),
)
APART = changed(
    TWO_LEAVES,
    ("from: leaf-1, to: spine-0", "from: leaf-1, to: spine-1"),
    ("from: leaf-0, to: spine-1", "from: leaf-0, to: spine-0"),
)
UNEVEN = changed(PLANES, ("from: blue-1, to: blue, count: 8", "from: blue-1, to: blue, count: 7"))
SPLIT_RAIL = changed(
    TWO_LEAVES,
    ("rails: 8", "rails: 4"),
    ("leaf-1, to: dgx/2-3/0-7", "leaf-1, to: dgx/2-3/1-7"),
    ("  cables:\n", "  cables:\n    - {from: dgx/2-3/0, to: leaf-0}\n"),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CROSSED, ("cables", "red-0 has rail 0 of dgx/0 and rail 1 of dgx/1")),
        (APART, ("", "the fabric falls into 2 parts that cannot reach each other")),
        (UNEVEN, ("cables", "blue-1 has 7 cables up, and red-1, which serves the same nodes, has 8")),
        (SPLIT_RAIL, ("cables", "rail 0 of dgx/2 goes to leaf-0 and leaf-1")),
    ],
    ids=["crossed rails", "in parts", "uneven rails", "a rail on two leaves"],
)
def test_what_would_not_carry_traffic_is_refused(tmp_path, text, expected):
    assert (f"fabric.{expected[0]}".rstrip("."), expected[1]) in faults(tmp_path, text)


def test_uneven_rails_may_be_meant(tmp_path):
    cluster = cluster_of(tmp_path, changed(UNEVEN, ("rails: 2", "rails: 2\n  uneven: true")))
    assert [leaf.up_cables for leaf in cluster.leaves] == [8, 8, 8, 7]


def test_planes_cannot_change_rail_at_spines(tmp_path):
    found = faults(tmp_path, changed(PLANES, ("rails: 2", "rails: 2\n  other_rail: spine")))
    problem = "the rails fall into 2 parts, and bytes are to change rail over the switches"
    assert found == [("fabric.other_rail", problem)]


def test_a_valley_between_leaves(tmp_path):
    """leaf-0 and leaf-2 have spines in common with leaf-1 only."""
    text = (
        HEAD.replace("count: 4", "count: 3")
        + """\
  switches:
    - {name: leaf-0, tier: 1, radix: 64}
    - {name: leaf-1, tier: 1, radix: 64}
    - {name: leaf-2, tier: 1, radix: 64}
    - {name: left, tier: 2, radix: 64}
    - {name: right, tier: 2, radix: 64}
  cables:
    - {from: dgx/0/0-7, to: leaf-0}
    - {from: dgx/1/0-7, to: leaf-1}
    - {from: dgx/2/0-7, to: leaf-2}
    - {from: leaf-0, to: left, count: 8}
    - {from: leaf-1, to: left, count: 4}
    - {from: leaf-1, to: right, count: 4}
    - {from: leaf-2, to: right, count: 8}
"""
    )
    assert faults(tmp_path, text) == [
        ("fabric.cables", "leaf-0 and leaf-2 have no spine in common, and no core above both")
    ]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([("count: 2", "count: 3")], ("kind", "a direct fabric joins two nodes, and there are 3")),
        ([("count: 2", "count: 1")], ("kind", "a direct fabric joins two nodes, and there is 1")),
        ([("rails: 8", "rails: 3")], ("rails", "3 rails do not divide the 8 NICs of a node")),
        ([("rails: 8", "rails: 16")], ("rails", "16 rails, but a node has only 8 NICs")),
    ],
)
def test_what_keeps_a_pair_from_being_joined(tmp_path, changes, expected):
    assert faults(tmp_path, changed(DIRECT, *changes)) == [(f"fabric.{expected[0]}", expected[1])]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            [("  spine: {per_pod: 4, radix: 64, uplinks: 8}\n  core: {count: 4, radix: 64}\n", "")],
            ("leaf.uplinks", "4 uplinks, and there is no spine above"),
        ),
        (
            [("  core: {count: 4, radix: 64}\n", "")],
            ("spine.uplinks", "8 uplinks, and there is no core above"),
        ),
        (
            [("radix: 64, uplinks: 4}", "radix: 64, uplinks: 0}")],
            ("spine", "no leaf has a cable up to a spine"),
        ),
    ],
)
def test_uplinks_lead_somewhere(tmp_path, changes, expected):
    assert (f"fabric.{expected[0]}", expected[1]) in faults(tmp_path, changed(SMALL, *changes))


def test_domains_of_several_nodes(tmp_path):
    cluster = cluster_of(tmp_path, changed(SMALL, ("count: 12", "count: 12, domain_nodes: 3")))
    assert cluster.domains == (range(3), range(3, 6), range(6, 9), range(9, 12))
    assert [cluster.domain_of(node) for node in (0, 2, 3, 11)] == [0, 0, 1, 3]
    assert cluster.domain_gpus(1) == 24


def test_the_example_of_the_documentation(tmp_path):
    page = (Path(__file__).parents[3] / "docs" / "topology-files.md").read_text(encoding="utf-8")
    (example,) = [block for block in page.split("```") if block.startswith("yaml\nfabric:")]
    text = HEAD[: HEAD.index("fabric:")].replace("count: 4", "count: 8") + example.removeprefix("yaml\n")
    cluster = cluster_of(tmp_path, text)
    assert [(leaf.name, leaf.down_cables, leaf.up_cables) for leaf in cluster.leaves] == [
        ("leaf-0", 32, 32),
        ("leaf-1", 32, 32),
    ]
