"""Every topology that comes along: it is what its name and its sources say, and it can be cabled."""

import re
from itertools import combinations, pairwise
from math import ceil
from pathlib import Path

import networkx as nx
import pytest

from sim.base.errors import UnsupportedError
from sim.catalog import load_catalog
from sim.config.load import load_topology
from sim.timing import Shard, place, roofline
from sim.topology.cluster import build

CATALOG = load_catalog()
FILES = {file.stem: file for file in sorted((Path(__file__).parents[2] / "topologies").glob("*.yaml"))}
FORMS = {name: load_topology(file) for name, file in FILES.items()}
CLUSTERS = {name: build(form, CATALOG) for name, form in FORMS.items()}
WIRED = [name for name, cluster in CLUSTERS.items() if cluster.fabric]
SWITCHED = [name for name in WIRED if CLUSTERS[name].leaves]
TIERED = [name for name in WIRED if FORMS[name].fabric.kind == "rail-optimized"]

# The topologies that have been asked for, with their GPUs, and nodes of an NVLink domain.
ASKED = {
    "b200-4000-ib-ndr": (4000, 1),
    "b200-4000-efa": (4000, 1),
    "b200-4000-ib-2to1": (4000, 1),
    "b200-4000-ib-4to1": (4000, 1),
    "b200-4000-roce-spectrumx": (4000, 1),
    "gb200-nvl72-4032": (4032, 18),
    "h200-2000-ib-ndr": (2000, 1),
    "h100-2048-efa": (2048, 1),
    "a100-sxm-1024-hdr": (1024, 1),
    "one-hgx-h200": (8, 1),
    "one-dgx-b200": (8, 1),
    "two-dgx-b200": (16, 1),
    "two-dgx-b200-direct": (16, 1),
    "mooncake-a800-16": (128, 1),
    "vera-rubin-nvl72": (72, 18),
    "one-t4-server": (8, 1),
    "one-l4-server": (8, 1),
    "one-l40s-server": (8, 1),
    "one-rtx-pro-6000-server": (8, 1),
    "two-dgx-sparks": (2, 1),
    "one-mac-studio": (1, 1),
    "one-rtx-workstation": (2, 1),
}
# Switches (leaf, spine, core) and cables (node-leaf, leaf-spine, spine-core) that a reference architecture
# prints for as many units, or what is left of them with fewer uplinks or slower NICs.
PRINTED = {
    "b200-4000-ib-ndr": ((128, 128, 64), (4096, 4096, 4096)),
    "b200-4000-ib-2to1": ((128, 64, 32), (4096, 2048, 2048)),
    "b200-4000-ib-4to1": ((128, 32, 16), (4096, 1024, 1024)),
    "b200-4000-roce-spectrumx": ((128 // 2, 64 // 2, 0), (4096, 4096, 0)),
    "h200-2000-ib-ndr": ((64, 32, 0), (2048, 2048, 0)),
    "a100-sxm-1024-hdr": ((56, 80, 28), (1120, 1120, 1120)),
}
LEAF_OVERSUBSCRIPTION = {"b200-4000-ib-2to1": 2, "b200-4000-ib-4to1": 4}


def per_pod(fabric):
    """The spines of a pod: as written, or those of each rail together."""
    if fabric.spine is None:
        return 0
    return fabric.spine.per_pod or fabric.spine.per_rail * fabric.rails


def switches(cluster):
    return len(cluster.leaves), len(cluster.spines), len(cluster.cores)


def test_those_that_were_asked_for_are_here():
    assert set(FILES) >= set(ASKED)


@pytest.mark.parametrize("name", FILES)
def test_a_file_says_what_it_is(name):
    form = FORMS[name]
    assert form.name == name
    assert len(form.description) > 40
    assert all(len(source) > 15 for source in form.source)
    text = FILES[name].read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=../schemas/topology.json\n")
    assert max(len(line) for line in text.splitlines()) <= 120
    # What a comment calls assumed is among the sources too.
    assumed = "Assumed" in text.partition("\nsim: 1\n")[0]
    assert assumed == any("assumption of this project" in source for source in form.source)


@pytest.mark.parametrize("name", ASKED)
def test_gpus_and_domains(name):
    gpus, domain_nodes = ASKED[name]
    assert CLUSTERS[name].gpus == gpus
    assert {group.domain_nodes for group in FORMS[name].nodes} == {domain_nodes}
    # A number of four digits in a name counts GPUs.
    assert [int(number) for number in re.findall(r"(?<!pro)-(\d{4})\b", name)] in ([], [gpus])


@pytest.mark.parametrize("name", [name for name in FILES if "nvl72" in name])
def test_an_nvlink_domain_is_a_rack_of_72(name):
    cluster = CLUSTERS[name]
    assert {cluster.domain_gpus(number) for number in range(len(cluster.domains))} == {72}
    for domain in cluster.domains:
        leaves = {cluster.leaf_of(node, rail) for node in domain for rail in range(cluster.rails)}
        assert len(leaves) == cluster.rails // cluster.fabric.rails_per_leaf


@pytest.mark.parametrize("name", FILES)
def test_switches_are_as_the_description_says(name):
    form, cluster = FORMS[name], CLUSTERS[name]
    counts = re.findall(r"\b(\d+) (leaves|spines|cores)\b", form.description)
    told = {tier: int(count) for count, tier in counts}
    if cluster.fabric is None:
        assert told == {}
    else:
        built = dict(zip(("leaves", "spines", "cores"), switches(cluster), strict=True))
        assert told == {tier: built[tier] for tier in told}
        # Whoever has more than one tier says how many switches each has.
        assert len(cluster.spines) == 0 or set(told) == {tier for tier in built if built[tier]}


@pytest.mark.parametrize("name", PRINTED)
def test_switches_and_cables_are_as_printed_for_full_units(name):
    cluster, fabric = CLUSTERS[name], CLUSTERS[name].fabric
    counts, (node_leaf, leaf_spine, spine_core) = PRINTED[name]
    assert switches(cluster) == counts
    assert sum(leaf.up_cables for leaf in cluster.leaves) == leaf_spine
    assert sum(spine.up_cables for spine in cluster.spines) == spine_core
    # The last unit is not full.
    units = ceil(len(cluster.types) / fabric.nodes_per_unit)
    assert units * fabric.nodes_per_unit * cluster.types[0].nics == node_leaf
    missing = units * fabric.nodes_per_unit - len(cluster.types)
    assert sum(leaf.down_cables for leaf in cluster.leaves) == node_leaf - missing * cluster.types[0].nics


@pytest.mark.parametrize("name", TIERED)
def test_switches_are_as_many_as_the_keys_of_the_file_ask_for(name):
    form, fabric = FORMS[name], FORMS[name].fabric
    units = ceil(sum(group.count for group in form.nodes) / fabric.nodes_per_unit)
    pods = ceil(units / fabric.units_per_pod)
    planes = fabric.rails // fabric.rails_per_leaf
    in_pod = per_pod(fabric)
    assert switches(CLUSTERS[name]) == (
        units * planes,
        pods * in_pod,
        fabric.core.count if fabric.core else 0,
    )
    # Ports of a leaf and of a spine, by arithmetic alone.
    nics = CATALOG.nodes[form.nodes[0].type].nics
    assert fabric.nodes_per_unit * nics // planes + fabric.leaf.uplinks <= fabric.leaf.radix
    if fabric.spine:
        down = fabric.units_per_pod * planes * fabric.leaf.uplinks
        assert down <= in_pod * (fabric.spine.radix - fabric.spine.uplinks)
    if fabric.core:
        assert pods * in_pod * fabric.spine.uplinks <= fabric.core.count * fabric.core.radix


@pytest.mark.parametrize("name", SWITCHED)
def test_no_switch_has_more_cables_than_ports(name):
    cluster = CLUSTERS[name]
    for switch in (*cluster.leaves, *cluster.spines, *cluster.cores):
        ups = getattr(switch, "up_cables", 0)
        assert 0 < switch.down_cables + ups <= switch.radix


@pytest.mark.parametrize("name", WIRED)
def test_every_nic_is_cabled_and_reaches_every_other(name):
    cluster = CLUSTERS[name]
    graph = cluster.graph
    assert nx.is_connected(graph)
    for node, chassis in enumerate(cluster.types):
        assert sum(edge["cables"] for edge in graph["node", node].values()) == chassis.nics
    assert all(node.nics % cluster.rails == 0 for node in cluster.types)


@pytest.mark.parametrize("name", WIRED)
def test_cables_suit_the_nics_of_the_nodes(name):
    form, cluster = FORMS[name], CLUSTERS[name]
    assert {node.nic_link for node in cluster.types} == {form.fabric.link}


@pytest.mark.parametrize("name", SWITCHED)
def test_oversubscription_is_as_named(name):
    cluster = CLUSTERS[name]
    full = max(leaf.down_cables for leaf in cluster.leaves)
    if cluster.spines:
        assert {full / leaf.up_cables for leaf in cluster.leaves} == {LEAF_OVERSUBSCRIPTION.get(name, 1)}
    if cluster.cores:
        assert all(spine.down_cables <= spine.up_cables for spine in cluster.spines)
    ratios = re.findall(r"\b(\d+):1\b", FORMS[name].description)
    assert ratios == ([str(LEAF_OVERSUBSCRIPTION[name])] if name in LEAF_OVERSUBSCRIPTION else [])
    if cluster.spines and name not in LEAF_OVERSUBSCRIPTION:
        assert "non-blocking" in FORMS[name].description


@pytest.mark.parametrize("name", [name for name in SWITCHED if CLUSTERS[name].spines])
def test_leaves_of_a_pod_share_every_spine_and_pods_every_core(name):
    cluster = CLUSTERS[name]
    for leaf in cluster.leaves:
        assert tuple(spine for spine, _ in leaf.up) == cluster.spines_in[leaf.pod]
        assert len({cables for _, cables in leaf.up}) == 1
    pods = {spine.pod for spine in cluster.spines}
    if cluster.cores:
        below = {pod: [0] * len(cluster.cores) for pod in pods}
        for spine in cluster.spines:
            for core, cables in spine.up:
                below[spine.pod][core] += cables
        # As evenly as whole cables go, so that spraying over them is a fair picture.
        assert all(min(cables) > 0 and max(cables) - min(cables) <= 1 for cables in below.values())
    else:
        assert len(pods) == 1


def test_a_rail_of_the_superpod_of_a100_has_spines_of_its_own():
    """Ten spines for each rail, two cables to each from a leaf of the rail, two groups of 14 cores."""
    cluster = CLUSTERS["a100-sxm-1024-hdr"]
    for leaf in cluster.leaves:
        (rail,) = leaf.rails
        names = [(cluster.spines[spine].name, cables) for spine, cables in leaf.up]
        assert names == [(f"pod 0 rail {rail} spine {i}", 2) for i in range(10)]
    groups = {tuple(core for core, _ in spine.up) for spine in cluster.spines}
    assert groups == {tuple(range(14)), tuple(range(14, 28))}
    assert {core.down_cables for core in cluster.cores} == {40}
    # Seven units are one pod, so a rail never goes higher than its spines.
    assert cluster.hops(cluster.leaf_of(0, 3), cluster.leaf_of(127, 3)).switches == 3
    assert cluster.hops(cluster.leaf_of(0, 3), cluster.leaf_of(0, 4)).switches == 5


def test_cheaper_tiers_are_cheaper_and_nothing_else():
    full, half, quarter = (
        FORMS[f"b200-4000-ib-{kind}"].model_dump(exclude={"name", "description", "source"})
        for kind in ("ndr", "2to1", "4to1")
    )
    for more, less in pairwise((full, half, quarter)):
        assert less["fabric"]["leaf"]["uplinks"] * 2 == more["fabric"]["leaf"]["uplinks"]
        assert less["fabric"]["spine"]["per_pod"] * 2 == more["fabric"]["spine"]["per_pod"]
        assert less["fabric"]["core"]["count"] * 2 == more["fabric"]["core"]["count"]
    for form in (full, half, quarter):
        del form["fabric"]["leaf"]["uplinks"], form["fabric"]["spine"]["per_pod"], form["fabric"]["core"]
    assert all(one == other for one, other in combinations((full, half, quarter), 2))


@pytest.mark.parametrize("name", FILES)
def test_a_replica_can_be_timed_on_the_nodes_or_is_told_why_not(name):
    for kind in {group.type for group in FORMS[name].nodes}:
        node = CATALOG.nodes[kind]
        half = "bf16" if "bf16" in CATALOG.gpus[node.gpu].dense_flops else "fp16"
        timed, remedies = [], []
        for tp in (1, 2, 4, 8):
            try:
                placement = place(CATALOG, Shard(CATALOG.models["llama-3.1-70b"], half, half, tp), kind)
                timed.append(roofline(placement).prefill_ps([(1024, 0)]))
            except UnsupportedError as refusal:
                remedies.append(refusal.nearest)
        assert timed
        # Over PCIe more GPUs need not be faster; two are.
        more = timed if node.nvlink is not None else timed[:2]
        assert more == sorted(more, reverse=True)
        assert all(remedies)
