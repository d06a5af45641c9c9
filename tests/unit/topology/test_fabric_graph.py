"""The graph of a fabric: what is there, how it is cabled, and what could not be built."""

from collections import Counter

import pytest
from models.clusters import B200_4000, SMALL, changed, cluster_of

from sim.base.errors import ConfigErrors
from sim.topology.graph import ports_used

LARGE = B200_4000.read_text()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    return cluster_of(tmp_path_factory.mktemp("large"), LARGE)


def cables(cluster, lower, upper):
    return sum(
        edge["cables"] for a, b, edge in cluster.graph.edges(data=True) if {a[0], b[0]} == {lower, upper}
    )


def test_b200_4000_has_the_switches_of_its_description(cluster):
    kinds = Counter(vertex[0] for vertex in cluster.graph)
    assert kinds == {"node": 500, "leaf": 128, "spine": 128, "core": 64}
    assert cluster.gpus == 4000


def test_b200_4000_has_the_cables_of_its_source(cluster):
    assert cables(cluster, "node", "leaf") == 500 * 8 == 4000
    assert cables(cluster, "leaf", "spine") == 4096
    assert cables(cluster, "spine", "core") == 4096


def test_no_switch_has_more_cables_than_ports(cluster):
    used = ports_used(cluster.graph)
    assert len(used) == 128 + 128 + 64
    assert max(used.values()) == 64
    assert {used[vertex] for vertex in used if vertex[0] == "core"} == {64}
    last_unit = [used["leaf", 15, rail] for rail in range(8)]
    assert last_unit == [20 + 32] * 8


def test_nics_go_to_the_leaf_of_their_rail(cluster):
    graph = cluster.graph
    assert {leaf: edge["rails"] for leaf, edge in graph["node", 33].items()} == {
        ("leaf", 1, rail): (rail,) for rail in range(8)
    }


def test_leaves_meet_only_at_spines_of_their_pod(cluster):
    for leaf in (vertex for vertex in cluster.graph if vertex[0] == "leaf"):
        above = [vertex for vertex in cluster.graph[leaf] if vertex[0] == "spine"]
        assert {pod for _, pod, _ in above} == {leaf[1] // 4}
        assert len(above) == 32


def test_capacities_upwards_are_counted_from_cables(cluster):
    assert [leaf.up_cables for leaf in cluster.leaves] == [32] * 128
    assert cluster.pod_up_cables == dict.fromkeys(range(4), 32 * 32)


def test_units_and_pods(cluster):
    assert [cluster.unit_of(node) for node in (0, 31, 32, 499)] == [0, 0, 1, 15]
    pods = {leaf.unit: leaf.pod for leaf in cluster.leaves}
    assert [pods[unit] for unit in (0, 3, 4, 15)] == [0, 0, 1, 3]


def test_uneven_uplinks_are_dealt_out_evenly(tmp_path):
    """Three uplinks of a leaf on four spines: no spine gets two more than another."""
    cluster = cluster_of(tmp_path, changed(SMALL, ("uplinks: 4", "uplinks: 3")))
    used = Counter()
    for lower, upper, edge in cluster.graph.edges(data=True):
        if {lower[0], upper[0]} == {"leaf", "spine"}:
            used[max(lower, upper)] += edge["cables"]
    by_pod = {pod: [count for spine, count in used.items() if spine[1] == pod] for pod in (0, 1)}
    assert [sum(counts) for counts in by_pod.values()] == [16 * 3, 8 * 3]
    assert all(max(counts) - min(counts) <= 1 for counts in by_pod.values())
    assert {leaf.up_cables for leaf in cluster.leaves} == {3}


OWN_SPINES = ("spine: {per_pod: 4, radix: 64, uplinks: 8}", "spine: {per_rail: 4, radix: 64, uplinks: 3}")


def test_each_rail_may_have_spines_of_its_own(tmp_path):
    """Three units of eight rails, two of them a pod: sixteen groups of four spines, each below all cores."""
    cluster = cluster_of(tmp_path, changed(SMALL, OWN_SPINES))
    assert len(cluster.spines) == 2 * 8 * 4
    for leaf in cluster.leaves:
        (rail,) = leaf.rails
        above = [cluster.spines[spine].name for spine, _ in leaf.up]
        assert above == [f"pod {leaf.unit // 2} rail {rail} spine {i}" for i in range(4)]
    leaf_of = cluster.leaf_of
    ends = {"rail": (0, 5, 0), "pod": (0, 8, 0), "other rail": (0, 5, 1)}
    switches = {
        name: cluster.hops(leaf_of(one, 0), leaf_of(other, rail)).switches
        for name, (one, other, rail) in ends.items()
    }
    assert switches == {"rail": 3, "pod": 5, "other rail": 5}


def test_uneven_uplinks_are_dealt_out_evenly_in_each_rail(tmp_path):
    """Of a rail two leaves of a pod with three uplinks each: no spine of its four gets both spare ones."""
    cluster = cluster_of(tmp_path, changed(SMALL, OWN_SPINES, ("uplinks: 4", "uplinks: 3")))
    used = {spine.name: spine.down_cables for spine in cluster.spines}
    for rail in range(8):
        full = [used[f"pod 0 rail {rail} spine {i}"] for i in range(4)]
        part = [used[f"pod 1 rail {rail} spine {i}"] for i in range(4)]
        assert (sum(full), max(full) - min(full)) == (6, 1)
        assert (sum(part), max(part)) == (3, 1)


def test_two_tiers_are_enough_for_one_pod(tmp_path):
    text = changed(
        SMALL, ("count: 12", "count: 8"), (", uplinks: 8", ""), ("  core: {count: 4, radix: 64}\n", "")
    )
    assert cluster_of(tmp_path, text).pod_up_cables == {0: 0}


@pytest.mark.parametrize(
    ("changes", "path", "problem"),
    [
        (
            [("leaf: {radix: 64", "leaf: {radix: 63")],
            "fabric.leaf.radix",
            "a leaf needs 64 ports and has 63",
        ),
        (
            [("per_pod: 32, radix: 64", "per_pod: 32, radix: 60")],
            "fabric.spine.radix",
            "a spine needs 64 ports and has 60",
        ),
        (
            [("core: {count: 64, radix: 64}", "core: {count: 32, radix: 64}")],
            "fabric.core.radix",
            "a core needs 128 ports and has 64",
        ),
        (
            [
                ("  core: {count: 64, radix: 64}\n", ""),
                ("per_pod: 32, radix: 64, uplinks: 32", "per_pod: 32, radix: 64"),
            ],
            "fabric",
            "the fabric falls into 4 parts that cannot reach each other",
        ),
        ([("rails: 8", "rails: 9")], "fabric.rails", "9 rails, but a node has only 8 NICs"),
        ([("type: dgx-b200", "type: dgx-b2000")], "nodes.0.type", "unknown node 'dgx-b2000'"),
        ([("link: infiniband-ndr", "link: infiniband-nrd")], "fabric.link", "unknown link 'infiniband-nrd'"),
    ],
    ids=["leaf ports", "spine ports", "core ports", "in parts", "too many rails", "node", "link"],
)
def test_what_cannot_be_built_is_said_at_its_line(tmp_path, changes, path, problem):
    text = changed(LARGE, *changes)
    with pytest.raises(ConfigErrors) as caught:
        cluster_of(tmp_path, text)
    found = [error for error in caught.value.errors if error.key == path]
    assert [error.problem for error in found] == [problem]
    line = text.splitlines()[found[0].line - 1]
    assert f"{path.rsplit('.', 1)[-1]}:" in line
    assert found[0].hint


def test_all_wiring_faults_are_reported_at_once(tmp_path):
    text = changed(
        LARGE,
        ("leaf: {radix: 64", "leaf: {radix: 50"),
        ("core: {count: 64, radix: 64}", "core: {count: 64, radix: 8}"),
    )
    with pytest.raises(ConfigErrors) as caught:
        cluster_of(tmp_path, text)
    assert [error.key for error in caught.value.errors] == ["fabric.leaf.radix", "fabric.core.radix"]
