"""Figures of topologies that can be counted by hand, and cuts told twice: by tiers and by flow."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models.clusters import B200_4000, SMALL, changed, cluster_of
from topology_texts import DIRECT, PLANES, TWO_LEAVES

from sim.topology.measure import bisection_cables, cut_of_flow, cut_of_tiers, measure


def tiers(figures):
    return {tier.tier: (tier.switches, tier.oversubscription) for tier in figures.fabric.tiers}


def hops(figures):
    return {hop.switches: hop.pairs for hop in figures.fabric.hops}


def test_b200_4000(tmp_path):
    figures = measure(cluster_of(tmp_path, B200_4000.read_text()))
    fabric = figures.fabric
    assert (figures.nodes, figures.gpus, fabric.nics, fabric.switches, fabric.cables) == (
        500,
        4000,
        4000,
        320,
        12192,
    )
    assert tiers(figures) == {"leaf": (128, 1.0), "spine": (128, 1.0), "core": (64, None)}
    assert [(part.lower, part.upper, part.count) for part in fabric.cabling] == [
        ("node", "leaf", 4000),
        ("leaf", "spine", 4096),
        ("spine", "core", 4096),
    ]
    assert fabric.bisection_bytes_per_s == 2000 * fabric.link_bytes_per_s == 100e12
    assert fabric.bisection_fraction == 1
    assert fabric.diameter_switches == 5
    within_units = 15 * 32 * 31 // 2 + 20 * 19 // 2
    within_pods = 3 * 128 * 127 // 2 + 116 * 115 // 2 - within_units
    assert hops(figures) == {
        1: 8 * within_units,
        3: 8 * within_pods,
        5: 8 * (500 * 499 // 2 - within_units - within_pods),
    }
    assert sum(hop.fraction for hop in fabric.hops) == pytest.approx(1)


def test_half_and_a_quarter_of_the_uplinks(tmp_path):
    for uplinks, ratio in ((16, 2.0), (8, 4.0)):
        text = changed(
            B200_4000.read_text(),
            ("leaf: {radix: 64, uplinks: 32}", f"leaf: {{radix: 64, uplinks: {uplinks}}}"),
        )
        figures = measure(cluster_of(tmp_path, text))
        assert tiers(figures)["leaf"] == (128, ratio)
        assert figures.fabric.bisection_fraction == pytest.approx(1 / ratio, rel=0.13)


def test_by_hand(tmp_path):
    """32 NIC cables, 16 up: 8 from each leaf, and half of the NICs are 16."""
    figures = measure(cluster_of(tmp_path, TWO_LEAVES))
    assert tiers(figures) == {"leaf": (2, 2.0), "spine": (2, None)}
    assert (figures.fabric.bisection_bytes_per_s, figures.fabric.bisection_fraction) == (8 * 50e9, 0.5)
    assert hops(figures) == {1: 8 * 2, 3: 8 * 4}
    assert [part.length_m for part in figures.fabric.cabling] == [5.0, 30.0]


def test_two_nodes_back_to_back(tmp_path):
    fabric = measure(cluster_of(tmp_path, DIRECT)).fabric
    assert (fabric.switches, fabric.cables, fabric.diameter_switches) == (0, 8, 0)
    assert (fabric.bisection_bytes_per_s, fabric.bisection_fraction) == (400e9, 1.0)


def test_nodes_without_a_fabric(tmp_path):
    text = SMALL[: SMALL.index("fabric:")]
    figures = measure(cluster_of(tmp_path, text))
    assert (figures.nodes, figures.gpus, figures.fabric) == (12, 96, None)


def test_pairs_within_a_domain_are_counted_as_such(tmp_path):
    """Domains of three nodes across units of four: their pairs no longer count by their leaves."""
    plain = measure(cluster_of(tmp_path, SMALL))
    joined = measure(cluster_of(tmp_path, changed(SMALL, ("count: 12", "count: 12, domain_nodes: 3"))))
    assert sum(hops(plain).values()) == sum(hops(joined).values()) == 8 * 66
    assert hops(plain) == {1: 8 * 18, 3: 8 * 16, 5: 8 * 32}
    # {0,1,2}, {3,4,5}, {6,7,8}, {9,10,11}: 8 of their pairs are in a unit, 2 in a pod, 2 across pods.
    assert hops(joined) == {None: 8 * 12, 1: 8 * 10, 3: 8 * 14, 5: 8 * 30}
    (domain,) = joined.domains
    assert (domain.count, domain.nodes, domain.gpus, domain.has_nvlink) == (4, 3, 24, True)


def test_halves_meet_where_a_domain_ends(tmp_path):
    """Ten nodes in domains of five part at five; twelve in domains of four at four or at eight."""
    for count, size, smaller in ((10, 5, 5), (12, 4, 4)):
        text = changed(
            SMALL,
            ("count: 12", f"count: {count}, domain_nodes: {size}"),
            ("uplinks: 4}", "uplinks: 32}"),
            ("per_pod: 4, radix: 64, uplinks: 8", "per_pod: 16, radix: 64, uplinks: 32"),
            ("count: 4, radix: 64", "count: 16, radix: 64"),
        )
        cluster = cluster_of(tmp_path, text)
        assert bisection_cables(cluster) == smaller * 8


@pytest.mark.parametrize("text", [TWO_LEAVES, PLANES, SMALL], ids=["by hand", "planes", "tiers"])
def test_both_cuts_agree(tmp_path, text):
    cluster = cluster_of(tmp_path, text)
    assert cut_of_tiers(cluster) == cut_of_flow(cluster) == bisection_cables(cluster)


@settings(max_examples=60)
@given(
    count=st.integers(2, 14),
    uplinks=st.integers(1, 3),
    spine_uplinks=st.integers(1, 2),
    unit=st.integers(1, 4),
    pod=st.integers(1, 3),
    shared=st.sampled_from((1, 2, 8)),
)
def test_both_cuts_agree_on_any_tiers(tmp_path_factory, count, uplinks, spine_uplinks, unit, pod, shared):
    """With as many cables from a leaf to each spine, and from a spine to each core, tiers are a tree."""
    text = changed(
        SMALL,
        ("count: 12", f"count: {count}"),
        ("rails: 8", f"rails: 8\n  rails_per_leaf: {shared}"),
        ("nodes_per_unit: 4", f"nodes_per_unit: {unit}"),
        ("units_per_pod: 2", f"units_per_pod: {pod}"),
        ("leaf: {radix: 64, uplinks: 4}", f"leaf: {{radix: 640, uplinks: {4 * uplinks}}}"),
        ("radix: 64, uplinks: 8}", f"radix: 640, uplinks: {4 * spine_uplinks}}}"),
        ("core: {count: 4, radix: 64}", "core: {count: 4, radix: 640}"),
    )
    cluster = cluster_of(tmp_path_factory.mktemp("any"), text)
    assert cut_of_tiers(cluster) == cut_of_flow(cluster)
