"""Build the graph of a fabric and check that it could be cabled.

Model: vertices are nodes (`tier` 0) and switches (`tier` 1 leaf, 2 spine, 3 core); an edge stands for all
cables between two of them (`cables`), and edges at a leaf say which rail they belong to (`rail`).

Ignores: cable lengths, and management and storage networks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

import networkx as nx

from sim.base.registry import Registry
from sim.config.topology import Fabric

Graph = Any  # nx.Graph; networkx ships no types

builder: Registry[Callable[[Fabric, int], Graph]] = Registry("topology builder")


@dataclass(frozen=True, slots=True)
class WiringFault:
    """Something in a topology file that cannot be cabled: where it was written, what, and a remedy."""

    path: str
    problem: str
    hint: str


@builder("rail-optimized")
def rail_optimized(fabric: Fabric, nodes: int) -> Graph:
    """NIC i of each node of a unit goes to leaf i of that unit; the leaves of a pod meet at its spines."""
    graph = nx.Graph()
    units = ceil(nodes / fabric.nodes_per_unit)
    pods = ceil(units / fabric.units_per_pod)
    for node in range(nodes):
        graph.add_node(("node", node), tier=0, unit=node // fabric.nodes_per_unit)
    for unit in range(units):
        members = range(unit * fabric.nodes_per_unit, min((unit + 1) * fabric.nodes_per_unit, nodes))
        for rail in range(fabric.rails):
            leaf = ("leaf", unit, rail)
            graph.add_node(leaf, tier=1, unit=unit, rail=rail, pod=unit // fabric.units_per_pod)
            for node in members:
                graph.add_edge(("node", node), leaf, cables=1, rail=rail)
    if fabric.spine:
        _add_spines(graph, fabric, pods)
    if fabric.core:
        _add_cores(graph, fabric, pods)
    return graph


def _add_spines(graph: Graph, fabric: Fabric, pods: int) -> None:
    """Spread the uplinks of each leaf over the spines of its pod, as evenly as they go."""
    assert fabric.spine is not None
    leaves = [vertex for vertex in graph if vertex[0] == "leaf"]
    for pod in range(pods):
        for spine in range(fabric.spine.per_pod):
            graph.add_node(("spine", pod, spine), tier=2, pod=pod)
    for number, leaf in enumerate(leaves):
        pod = graph.nodes[leaf]["pod"]
        _spread(
            graph, leaf, [("spine", pod, i) for i in range(fabric.spine.per_pod)], fabric.leaf.uplinks, number
        )


def _add_cores(graph: Graph, fabric: Fabric, pods: int) -> None:
    """Spread the uplinks of each spine over the cores."""
    assert fabric.core is not None
    assert fabric.spine is not None
    cores = [("core", i) for i in range(fabric.core.count)]
    for core in cores:
        graph.add_node(core, tier=3)
    number = 0
    for pod in range(pods):
        for spine in range(fabric.spine.per_pod):
            _spread(graph, ("spine", pod, spine), cores, fabric.spine.uplinks, number)
            number += 1


def _spread(graph: Graph, switch: object, above: list[Any], cables: int, number: int) -> None:
    """Deal `cables` out to the switches above, starting where the switch before left off."""
    each, rest = divmod(cables, len(above))
    for i, upper in enumerate(above):
        count = each + (1 if (i - number * rest) % len(above) < rest else 0)
        if count:
            graph.add_edge(switch, upper, cables=count)


def ports_used(graph: Graph) -> dict[Any, int]:
    """Cables that end at each switch."""
    return {
        vertex: sum(edge["cables"] for edge in graph[vertex].values())
        for vertex in graph
        if vertex[0] != "node"
    }


def faults(graph: Graph, fabric: Fabric) -> list[WiringFault]:
    """Everything about this fabric that could not be built: too few ports, or nodes that cannot meet."""
    found: list[WiringFault] = []
    used = ports_used(graph)
    for tier in ("leaf", "spine", "core"):
        form = getattr(fabric, tier)
        most = max((count for vertex, count in used.items() if vertex[0] == tier), default=0)
        if form and most > form.radix:
            found.append(
                WiringFault(
                    f"fabric.{tier}.radix",
                    f"a {tier} needs {most} ports and has {form.radix}",
                    f"use a switch with {most} ports, or fewer cables",
                )
            )
    if graph.number_of_nodes() and not nx.is_connected(graph):
        parts = nx.number_connected_components(graph)
        found.append(
            WiringFault(
                "fabric",
                f"the fabric falls into {parts} parts that cannot reach each other",
                "add a tier above, or uplinks to it",
            )
        )
    return found
