"""Every topology that comes along can be measured, outlined, crossed and drawn, and the figures agree."""

from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest

from sim.catalog import load_catalog
from sim.cli.topology import described
from sim.cli.way import way
from sim.config.load import dump, load_topology
from sim.report.draw import draw
from sim.report.scene import scene
from sim.report.topology import stats_screen, tree_screen
from sim.topology.cluster import build
from sim.topology.measure import cut_of_flow, cut_of_tiers, measure
from sim.topology.outline import outline
from sim.topology.place import place

FILES = {file.stem: file for file in sorted((Path(__file__).parents[2] / "topologies").glob("*.yaml"))}
CATALOG = load_catalog()


@pytest.fixture(scope="module", params=FILES)
def form(request):
    return load_topology(FILES[request.param])


@pytest.fixture(scope="module")
def cluster(form):
    return build(form, CATALOG)


def totals(parts, times=1):
    found = Counter()
    for part in parts:
        found[part.kind] += part.count * times
        found += totals(part.parts, part.count * times)
    return found


def test_what_is_written_loads_again(form, tmp_path):
    path = tmp_path / "again.yaml"
    path.write_text(dump(form, tmp_path))
    assert load_topology(path) == form


def test_the_tree_holds_everything_once(cluster):
    found = totals(outline(cluster))
    assert found["node"] == len(cluster.types)
    if cluster.fabric:
        counts = (len(cluster.leaves), len(cluster.spines), len(cluster.cores))
        assert (found["leaf"], found["spine"], found["core"]) == counts


def test_every_nic_has_a_cable_and_every_cable_two_ends(cluster):
    fabric = measure(cluster).fabric
    if fabric is None:
        return
    cables = {(part.lower, part.upper): part.count for part in fabric.cabling}
    assert sum(count for (lower, _), count in cables.items() if lower == "node") in (
        fabric.nics,
        fabric.nics / 2,
    )
    assert sum(tier.down_cables + tier.up_cables for tier in fabric.tiers) == sum(
        count * (1 if lower == "node" else 2) for (lower, upper), count in cables.items() if upper != "node"
    )
    assert all(tier.ports_used <= tier.radix for tier in fabric.tiers)


def test_every_pair_of_nodes_is_counted_once_a_rail(cluster):
    fabric = measure(cluster).fabric
    if fabric is None:
        return
    nodes = len(cluster.types)
    assert sum(hop.pairs for hop in fabric.hops) == fabric.rails * nodes * (nodes - 1) // 2


@pytest.mark.slow
def test_both_cuts_agree(cluster):
    if cluster.leaves if cluster.fabric else False:
        assert cut_of_tiers(cluster) == cut_of_flow(cluster)


def test_ends_meet_at_the_rate_of_their_nics(cluster):
    """A node alone on the fabric is held back by its narrowest link, the same both ways."""
    last = len(cluster.types) - 1
    found = way(cluster, place(cluster, "0"), place(cluster, str(last)))
    assert found.latency_ps > 0
    assert found.bytes_per_s == pytest.approx(min(link.bytes_per_s for link in found.links))
    back = way(cluster, place(cluster, str(last)), place(cluster, "0"))
    assert (back.bytes_per_s, back.latency_ps) == (found.bytes_per_s, found.latency_ps)


def test_screens_are_short_and_narrow(form, cluster):
    figures = described(form, cluster)
    for lines in (tree_screen(figures), stats_screen(figures)):
        texts = ["".join(text for text, _ in line) for line in lines]
        assert len(texts) < 45
        assert max(len(text) for text in texts) <= 90


def test_the_drawing_has_every_layer(form, cluster):
    graph = cluster.graph if cluster.fabric else None
    figures = described(form, cluster)
    kinds = Counter(box.kind for box in scene(figures, graph).boxes)
    assert kinds["node"] >= 1
    assert kinds["gpu"] == kinds["node"] * cluster.types[0].gpus
    for tier in asdict(measure(cluster))["fabric"]["tiers"] if cluster.fabric else ():
        assert kinds[tier["tier"]] >= 1
    assert draw(figures, graph).axes
