"""Builders of fabrics whose cables follow a rule: tiers of switches by rail, and two nodes back to back.

The builder of what is listed cable by cable is in sim.topology.explicit.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from sim.config.topology import Fabric
from sim.topology import explicit  # noqa: F401 - it registers a kind of fabric too
from sim.topology.graph import Graph, Site, Vertex, builder, new_graph, of_tier


@builder("rail-optimized")
def rail_optimized(fabric: Fabric, sites: Sequence[Site]) -> Graph:
    """NIC i of each node of a unit goes to leaf i of that unit; leaves of a pod meet at its spines."""
    assert fabric.nodes_per_unit is not None
    graph = new_graph(sites)
    units = ceil(len(sites) / fabric.nodes_per_unit)
    for unit in range(units):
        first = unit * fabric.nodes_per_unit
        members = range(first, min(first + fabric.nodes_per_unit, len(sites)))
        for plane in range(fabric.rails // fabric.rails_per_leaf):
            _add_leaf(graph, fabric, unit, plane)
            rails = graph.nodes["leaf", unit, plane]["rails"]
            for node in members:
                graph.nodes["node", node]["unit"] = unit
                cables = len(rails) * (sites[node].nics // fabric.rails)
                _cable(graph, ("node", node), ("leaf", unit, plane), cables, fabric.lengths.node_leaf)
                graph.edges[("node", node), ("leaf", unit, plane)]["rails"] = rails
    if fabric.spine:
        _add_spines(graph, fabric)
    if fabric.core:
        _add_cores(graph, fabric)
    return graph


@builder("direct")
def direct(fabric: Fabric, sites: Sequence[Site]) -> Graph:
    """Two nodes without a switch: NIC i of one is cabled to NIC i of the other."""
    graph = new_graph(sites)
    if len(sites) == 2:
        cables = min(site.nics for site in sites)
        _cable(graph, ("node", 0), ("node", 1), cables, fabric.lengths.node_leaf)
        graph.edges[("node", 0), ("node", 1)]["rails"] = tuple(range(fabric.rails))
    return graph


def _planes(fabric: Fabric) -> int:
    """Into how many pods the leaves of the same units fall: one, or one for each rail."""
    has_own = fabric.spine is not None and fabric.spine.per_rail is not None
    return fabric.rails if has_own else 1


def _add_leaf(graph: Graph, fabric: Fabric, unit: int, plane: int) -> None:
    assert fabric.leaf is not None
    assert fabric.units_per_pod is not None
    planes = _planes(fabric)
    graph.add_node(
        ("leaf", unit, plane),
        tier=1,
        name=f"unit {unit} leaf {plane}",
        unit=unit,
        pod=unit // fabric.units_per_pod * planes + plane % planes,
        rails=tuple(range(plane * fabric.rails_per_leaf, (plane + 1) * fabric.rails_per_leaf)),
        radix=fabric.leaf.radix,
        path="fabric.leaf",
    )


def _add_spines(graph: Graph, fabric: Fabric) -> None:
    """Spread the uplinks of each leaf over the spines of its pod, as evenly as they go."""
    assert fabric.leaf is not None
    assert fabric.spine is not None
    leaves, planes = of_tier(graph, 1), _planes(fabric)
    count = fabric.spine.per_rail or fabric.spine.per_pod
    assert count is not None
    spines: dict[int, list[Vertex]] = {}
    for pod in sorted({graph.nodes[leaf]["pod"] for leaf in leaves}):
        where = f"pod {pod}" if planes == 1 else f"pod {pod // planes} rail {pod % planes}"
        spines[pod] = [("spine", pod, i) for i in range(count)]
        for i, spine in enumerate(spines[pod]):
            facts = {"pod": pod, "radix": fabric.spine.radix, "path": "fabric.spine"}
            graph.add_node(spine, tier=2, name=f"{where} spine {i}", **facts)
    for number, leaf in enumerate(leaves):
        bundle = (fabric.leaf.uplinks, fabric.lengths.leaf_spine)
        _spread(graph, leaf, spines[graph.nodes[leaf]["pod"]], bundle, number // planes)


def _add_cores(graph: Graph, fabric: Fabric) -> None:
    """Spread the uplinks of each spine over the cores."""
    assert fabric.core is not None
    cores = [("core", i) for i in range(fabric.core.count)]
    spines = of_tier(graph, 2)
    for i, core in enumerate(cores):
        graph.add_node(core, tier=3, name=f"core {i}", radix=fabric.core.radix, path="fabric.core")
    for number, spine in enumerate(spines):
        assert fabric.spine is not None
        _spread(graph, spine, cores, (fabric.spine.uplinks, fabric.lengths.spine_core), number)


def _spread(
    graph: Graph, switch: Vertex, uppers: Sequence[Vertex], bundle: tuple[int, float], number: int
) -> None:
    """Deal a bundle (cables, length) out to the switches above, starting where the one before left off."""
    cables, length_m = bundle
    each, rest = divmod(cables, len(uppers))
    for i, upper in enumerate(uppers):
        count = each + (1 if (i - number * rest) % len(uppers) < rest else 0)
        if count:
            _cable(graph, switch, upper, count, length_m)


def _cable(graph: Graph, lower: Vertex, upper: Vertex, cables: int, length_m: float) -> None:
    graph.add_edge(lower, upper, cables=cables, length_m=length_m)
