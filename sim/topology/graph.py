"""The graph of a fabric, and the words in which builders and readers of it agree.

Model: vertices are nodes, `("node", i)`, and switches, whose first part is the name of their tier. All have
`tier` (0 node, 1 leaf, 2 spine, 3 core) and `name`. Nodes and leaves have a `unit`, leaves and spines a
`pod`, leaves their `rails`; switches have their `radix`, and `path`, the key in the file that they come from.
An edge stands for all cables between two vertices: `cables` and their length `length_m`; one at a node
says for which `rails` they are. `graph.graph["faults"]` holds what a builder could not wire as written.

Ignores: management and storage networks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sim.base.registry import Registry
from sim.config.topology import Fabric

Graph = Any  # nx.Graph; networkx ships no types
Vertex = tuple[Any, ...]

TIERS: tuple[str, ...] = ("node", "leaf", "spine", "core")


@dataclass(frozen=True, slots=True)
class Site:
    """A node as a builder sees it: the group it was written in, its position there, and its NICs."""

    group: str
    index: int
    nics: int


@dataclass(frozen=True, slots=True)
class WiringFault:
    """Something in a topology file that cannot be cabled: where it was written, what, and a remedy."""

    path: str
    problem: str
    hint: str


Builder = Callable[[Fabric, Sequence[Site]], Graph]
builder: Registry[Builder] = Registry("topology builder")
"""Kinds of fabrics: each makes a graph of the keys of a fabric and its nodes in order."""


def new_graph(sites: Sequence[Site]) -> Graph:
    """A graph of nodes without cables."""
    import networkx as nx  # noqa: PLC0415 - slow, and `sim list builders` makes no graph

    graph = nx.Graph(faults=[])
    for number, site in enumerate(sites):
        name = f"{site.group}/{site.index}"
        graph.add_node(("node", number), tier=0, name=name, group=site.group, unit=0)
    return graph


def rail_of(nic: int, nics: int, rails: int) -> int:
    """The rail of a NIC: NICs in order are dealt to the rails in equal runs."""
    return nic * rails // nics


def above(graph: Graph, vertex: Vertex) -> list[tuple[Vertex, dict[str, Any]]]:
    """The switches that a vertex has cables up to, each with its edge."""
    tier = graph.nodes[vertex]["tier"]
    return [(other, edge) for other, edge in graph[vertex].items() if graph.nodes[other]["tier"] > tier]


def of_tier(graph: Graph, tier: int) -> list[Vertex]:
    """The vertices of a tier, in the order in which they were built."""
    return [vertex for vertex, facts in graph.nodes(data=True) if facts["tier"] == tier]


def ports_used(graph: Graph) -> dict[Vertex, int]:
    """Cables that end at each switch."""
    return {
        vertex: sum(edge["cables"] for edge in graph[vertex].values())
        for vertex in graph
        if vertex[0] != "node"
    }


def number_parts(graph: Graph) -> None:
    """Number units and pods by what hangs together: nodes by their leaves, leaves by their spines."""
    import networkx as nx  # noqa: PLC0415 - as above

    for key, tiers in (("unit", (0, 1)), ("pod", (1, 2))):
        part = graph.subgraph([vertex for tier in tiers for vertex in of_tier(graph, tier)])
        number = 0
        for vertex in part:
            if key not in graph.nodes[vertex] or graph.nodes[vertex][key] is None:
                for member in nx.node_connected_component(part, vertex):
                    graph.nodes[member][key] = number
                number += 1
