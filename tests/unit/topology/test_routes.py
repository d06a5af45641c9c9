"""Ways between places, hop by hop, with rates and latencies that can be worked out by hand."""

import pytest
from models.clusters import B200_4000, SMALL, changed, cluster_of
from topology_texts import DIRECT, TWO_LEAVES

from sim.base.errors import ConfigError
from sim.topology.route import Place, place, route


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    return cluster_of(tmp_path_factory.mktemp("large"), B200_4000.read_text())


def way(cluster, one, other):
    return route(cluster, place(cluster, one), place(cluster, other))


def steps(found):
    return [(hop.source, hop.target, hop.cables) for hop in found.hops]


def test_nodes_in_different_pods(cluster):
    found = way(cluster, "0", "499")
    assert steps(found) == [
        ("node 0", "8 leaves", 8),
        ("8 leaves", "32 spines", 8 * 32),
        ("32 spines", "64 cores", 32 * 32),
        ("64 cores", "32 spines", 32 * 32),
        ("32 spines", "8 leaves", 8 * 32),
        ("8 leaves", "node 499", 8),
    ]
    link = cluster.link
    assert found.bytes_per_s == 8 * link.effective_bytes_per_s
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
    assert steps(found) == [("GPU 3", "unit 0 leaf 3", 1), ("unit 0 leaf 3", "GPU 11", 1)]
    assert found.bytes_per_s == cluster.rate_bytes_per_s


def test_another_rail_is_reached_over_nvlink_first(cluster):
    found = way(cluster, "gpu 0", "gpu 11")
    assert steps(found) == [
        ("GPU 0", "GPU beside rail 3", 1),
        ("GPU beside rail 3", "unit 0 leaf 3", 1),
        ("unit 0 leaf 3", "GPU 11", 1),
    ]
    local, link = cluster.local[0], cluster.link
    assert found.latency.nvlink_ps == local.latency_ps
    assert found.latency_ps == link.endpoint_latency_ps + link.latency_ps + local.latency_ps


def test_another_rail_over_the_spines(tmp_path):
    spine = cluster_of(tmp_path, changed(SMALL, ("rails: 8", "rails: 8\n  other_rail: spine")))
    found = way(spine, "gpu 0", "gpu 11")
    assert steps(found)[0] == ("GPU 0", "unit 0 leaf 0", 1)
    assert steps(found)[-1] == ("unit 0 leaf 3", "GPU 11", 1)
    assert (found.latency.switches, found.latency.nvlink_ps) == (3, 0)


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
    assert way(thin, "0", "1").bytes_per_s == 8 * thin.rate_bytes_per_s
    assert way(thin, "0", "8").bytes_per_s == pytest.approx(0.8 * 4 * thin.rate_bytes_per_s)


def test_fibre_takes_time(tmp_path):
    found = way(cluster_of(tmp_path, TWO_LEAVES), "0", "3")
    assert (found.latency.fibre_m, found.latency.fibre_ps) == (58.0, 58 * 5000)


def test_two_nodes_back_to_back(tmp_path):
    found = way(cluster_of(tmp_path, DIRECT), "0", "1")
    assert (found.way, steps(found)) == ("NIC to NIC", [("node 0", "node 1", 8)])


def test_within_a_domain_of_several_nodes(tmp_path):
    joined = cluster_of(tmp_path, changed(SMALL, ("count: 12", "count: 12, domain_nodes: 3")))
    local = joined.local[0]
    found = way(joined, "gpu 0", "gpu 23")
    assert (found.way, steps(found)) == ("within an NVLink domain", [("GPU 0", "GPU 23", 1)])
    assert found.bytes_per_s == local.effective_bytes_per_s
    assert found.latency_ps == local.endpoint_latency_ps + local.latency_ps
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
        ("-1", "is no node and no GPU"),
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
