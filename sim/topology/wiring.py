"""Switches in order with their cables, read off the graph of a fabric whatever built it.

Leaves, spines and cores are numbered in the order in which they were built. Where there is no switch, as
between two nodes back to back, the leaf of a NIC is NO_LEAF.
"""

from __future__ import annotations

from dataclasses import dataclass

from sim.topology.graph import Graph, Vertex, above, of_tier

NO_LEAF = -1
Cabled = tuple[tuple[int, int], ...]
"""Switches of the tier above by number, each with its cables."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A switch that nodes are cabled to.

    `nodes` are those with a NIC at it, on all `rails` of it; `up` are the cables to spines. `length_m` is
    that of its longest cable to a node, `up_length_m` to a spine.
    """

    number: int
    name: str
    unit: int
    pod: int
    rails: tuple[int, ...]
    radix: int
    nodes: tuple[int, ...]
    down_cables: int
    up: Cabled
    length_m: float
    up_length_m: float

    @property
    def up_cables(self) -> int:
        """Cables to all spines."""
        return sum(cables for _, cables in self.up)


@dataclass(frozen=True, slots=True)
class Spine:
    """A switch above leaves; `up` are the cables to cores."""

    number: int
    name: str
    pod: int
    radix: int
    down_cables: int
    up: Cabled
    up_length_m: float

    @property
    def up_cables(self) -> int:
        """Cables to all cores."""
        return sum(cables for _, cables in self.up)


@dataclass(frozen=True, slots=True)
class Core:
    """A switch above spines."""

    number: int
    name: str
    radix: int
    down_cables: int


@dataclass(frozen=True, slots=True)
class Hops:
    """The way between two leaves: switches on it, leaves counted, and metres of cable from NIC to NIC."""

    switches: int
    length_m: float


class Wiring:
    """All switches of a fabric, and which leaf each rail of each node is cabled to."""

    def __init__(self, graph: Graph, rails: int) -> None:
        vertices = [of_tier(graph, tier) for tier in range(4)]
        numbers: dict[Vertex, int] = {
            vertex: number for tier in vertices for number, vertex in enumerate(tier)
        }
        self.leaves = tuple(_leaf(graph, vertex, numbers) for vertex in vertices[1])
        self.spines = tuple(_spine(graph, vertex, numbers) for vertex in vertices[2])
        self.cores = tuple(_core(graph, vertex, numbers) for vertex in vertices[3])
        self.leaf_of = [[NO_LEAF] * rails for _ in vertices[0]]
        for leaf in self.leaves:
            for node in leaf.nodes:
                for rail in leaf.rails:
                    self.leaf_of[node][rail] = leaf.number
        ends = [edge["length_m"] for _, _, edge in graph.edges(vertices[0], data=True)]
        self.direct_length_m: float = max(ends, default=0.0)

    def hops(self, one: int, other: int) -> Hops:
        """The way from a leaf to another: over itself, a spine of both, or a core."""
        if NO_LEAF in (one, other):
            return Hops(0, self.direct_length_m)
        a, b = self.leaves[one], self.leaves[other]
        ends_m = a.length_m + b.length_m
        if one == other:
            return Hops(1, ends_m)
        ends_m += a.up_length_m + b.up_length_m
        if a.pod == b.pod and {spine for spine, _ in a.up} & {spine for spine, _ in b.up}:
            return Hops(3, ends_m)
        cores_m = sum(max(self.spines[spine].up_length_m for spine, _ in leaf.up) for leaf in (a, b))
        return Hops(5, ends_m + cores_m)


def _leaf(graph: Graph, vertex: Vertex, numbers: dict[Vertex, int]) -> Leaf:
    facts = graph.nodes[vertex]
    ends = {other: edge for other, edge in graph[vertex].items() if other[0] == "node"}
    uplinks = above(graph, vertex)
    return Leaf(
        number=numbers[vertex],
        name=facts["name"],
        unit=facts["unit"],
        pod=facts["pod"],
        rails=facts["rails"],
        radix=facts["radix"],
        nodes=tuple(sorted(numbers[node] for node in ends)),
        down_cables=sum(edge["cables"] for edge in ends.values()),
        up=_cabled(graph, vertex, numbers),
        length_m=max((edge["length_m"] for edge in ends.values()), default=0.0),
        up_length_m=max((edge["length_m"] for _, edge in uplinks), default=0.0),
    )


def _spine(graph: Graph, vertex: Vertex, numbers: dict[Vertex, int]) -> Spine:
    facts, uplinks = graph.nodes[vertex], above(graph, vertex)
    return Spine(
        number=numbers[vertex],
        name=facts["name"],
        pod=facts["pod"],
        radix=facts["radix"],
        down_cables=_down_cables(graph, vertex),
        up=_cabled(graph, vertex, numbers),
        up_length_m=max((edge["length_m"] for _, edge in uplinks), default=0.0),
    )


def _core(graph: Graph, vertex: Vertex, numbers: dict[Vertex, int]) -> Core:
    facts = graph.nodes[vertex]
    return Core(numbers[vertex], facts["name"], facts["radix"], _down_cables(graph, vertex))


def _cabled(graph: Graph, vertex: Vertex, numbers: dict[Vertex, int]) -> Cabled:
    return tuple(sorted((numbers[other], edge["cables"]) for other, edge in above(graph, vertex)))


def _down_cables(graph: Graph, vertex: Vertex) -> int:
    cables: int = sum(edge["cables"] for edge in graph[vertex].values())
    uplinks: int = sum(edge["cables"] for _, edge in above(graph, vertex))
    return cables - uplinks
