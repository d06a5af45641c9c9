"""What a fabric amounts to: switches and cables, bisection bandwidth, oversubscription, hops, NVLink domains.

Model: oversubscription is cables down over cables up, of a leaf and of all spines of a pod; the worst counts.
Hops are the switches between two nodes, counted for every pair of nodes and every rail. Bisection bandwidth
is the smallest cut between the first and the second half of the nodes, at line rate and in one direction;
its fraction is of what the NICs of the smaller half send. Halves meet where an NVLink domain ends.

Ignores: that routing may not reach what cables could carry; NVLink between the halves.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations

import networkx as nx

from sim.topology.cluster import Cluster
from sim.topology.graph import TIERS, above, of_tier, ports_used


@dataclass(frozen=True, slots=True)
class TierFigures:
    """The switches of a tier: `oversubscription` is None where nothing is above."""

    tier: str
    switches: int
    radix: int
    ports_used: int
    ports_free: int
    down_cables: int
    up_cables: int
    oversubscription: float | None


@dataclass(frozen=True, slots=True)
class CableFigures:
    """The cables between two tiers, and the longest of them."""

    lower: str
    upper: str
    count: int
    length_m: float


@dataclass(frozen=True, slots=True)
class HopFigures:
    """Pairs of nodes that are equally far apart; `switches` is None for those of one NVLink domain."""

    switches: int | None
    pairs: int
    fraction: float
    latency_ps: int


@dataclass(frozen=True, slots=True)
class DomainFigures:
    """Equal NVLink domains: how many, their nodes and GPUs, and the rate of one GPU in one direction.

    A node without NVLink is one too: its GPUs meet over PCIe.
    """

    count: int
    nodes: int
    gpus: int
    link: str
    bytes_per_s: float
    has_nvlink: bool


@dataclass(frozen=True, slots=True)
class FabricFigures:
    """All figures of a fabric; rates are line rates in one direction.

    The bisection is None for a single node; units and pods are 0 where there are no leaves or spines.
    """

    kind: str
    link: str
    link_bytes_per_s: float
    rails: int
    nics: int
    units: int
    pods: int
    switches: int
    cables: int
    tiers: tuple[TierFigures, ...]
    cabling: tuple[CableFigures, ...]
    bisection_bytes_per_s: float | None
    bisection_fraction: float | None
    hops: tuple[HopFigures, ...]
    diameter_switches: int | None


@dataclass(frozen=True, slots=True)
class Measures:
    """All figures of a topology; `fabric` is None where the nodes are not connected."""

    name: str
    nodes: int
    gpus: int
    domains: tuple[DomainFigures, ...]
    fabric: FabricFigures | None


def measure(cluster: Cluster) -> Measures:
    """Measure a topology."""
    fabric = None if cluster.fabric is None else _fabric(cluster)
    return Measures(cluster.name, len(cluster.types), cluster.gpus, _domains(cluster), fabric)


def _fabric(cluster: Cluster) -> FabricFigures:
    assert cluster.fabric is not None
    assert cluster.link is not None
    tiers, cabling, hops = _tiers(cluster), _cabling(cluster), _hops(cluster)
    half = _half(cluster)
    sent = [sum(node.nics for node in nodes) for nodes in (cluster.types[:half], cluster.types[half:])]
    cut = bisection_cables(cluster) if half else None
    return FabricFigures(
        kind=cluster.fabric.kind,
        link=cluster.link.name,
        link_bytes_per_s=cluster.link.bytes_per_s,
        rails=cluster.rails,
        nics=sum(sent),
        units=len({leaf.unit for leaf in cluster.leaves}),
        pods=len({spine.pod for spine in cluster.spines}),
        switches=sum(tier.switches for tier in tiers),
        cables=sum(part.count for part in cabling),
        tiers=tiers,
        cabling=cabling,
        bisection_bytes_per_s=None if cut is None else cut * cluster.link.bytes_per_s,
        bisection_fraction=None if cut is None else cut / min(sent),
        hops=hops,
        diameter_switches=max((hop.switches for hop in hops if hop.switches is not None), default=None),
    )


def _tiers(cluster: Cluster) -> tuple[TierFigures, ...]:
    graph, used = cluster.graph, ports_used(cluster.graph)
    figures = []
    for tier in (1, 2, 3):
        switches = of_tier(graph, tier)
        if not switches:
            continue
        ports = sum(graph.nodes[switch]["radix"] for switch in switches)
        cables = sum(used[switch] for switch in switches)
        up = sum(edge["cables"] for switch in switches for _, edge in above(graph, switch))
        figures.append(
            TierFigures(
                tier=TIERS[tier],
                switches=len(switches),
                radix=max(graph.nodes[switch]["radix"] for switch in switches),
                ports_used=max(used[switch] for switch in switches),
                ports_free=ports - cables,
                down_cables=cables - up,
                up_cables=up,
                oversubscription=_oversubscription(cluster, tier),
            )
        )
    return tuple(figures)


def _oversubscription(cluster: Cluster, tier: int) -> float | None:
    """The worst ratio of cables down to cables up of a leaf, or of all spines of a pod."""
    if tier == 1:
        pairs = [(leaf.down_cables, leaf.up_cables) for leaf in cluster.leaves]
    elif tier == 2:
        spines = {pod: [cluster.spines[i] for i in numbers] for pod, numbers in cluster.spines_in.items()}
        pairs = [
            (sum(spine.down_cables for spine in of_pod), sum(spine.up_cables for spine in of_pod))
            for of_pod in spines.values()
        ]
    else:
        return None
    return max((down / up for down, up in pairs if up), default=None)


def _cabling(cluster: Cluster) -> tuple[CableFigures, ...]:
    count: Counter[tuple[int, int]] = Counter()
    length_m: dict[tuple[int, int], float] = {}
    graph = cluster.graph
    for one, other, edge in graph.edges(data=True):
        tiers = sorted((graph.nodes[one]["tier"], graph.nodes[other]["tier"]))
        key = (tiers[0], tiers[1])
        count[key] += edge["cables"]
        length_m[key] = max(length_m.get(key, 0.0), edge["length_m"])
    return tuple(CableFigures(TIERS[a], TIERS[b], count[a, b], length_m[a, b]) for a, b in sorted(count))


def _half(cluster: Cluster) -> int:
    """The number of nodes in the first half: up to the end of an NVLink domain, if one ends within."""
    middle = len(cluster.types) // 2
    ends = [nodes.stop for nodes in cluster.domains[:-1]]
    return min(ends, key=lambda end: abs(end - middle), default=middle)


def bisection_cables(cluster: Cluster) -> int:
    """The smallest number of cables that part the two halves of the nodes."""
    assert cluster.fabric is not None
    return cut_of_tiers(cluster) if cluster.fabric.kind == "rail-optimized" else cut_of_flow(cluster)


def cut_of_tiers(cluster: Cluster) -> int:
    """The smallest cut of a fabric in which the spines of a pod act as one, and so do the cores.

    That makes the fabric a tree. Each leaf, pod and core lies on the side that costs less, given what lies
    above it.
    """
    half = _half(cluster)
    pods: dict[int, list[int]] = {}
    for leaf in cluster.leaves:
        each = leaf.down_cables // len(leaf.nodes)
        first = sum(node < half for node in leaf.nodes) * each
        sides = (leaf.down_cables - first, first)  # cables cut with the leaf in the first, the second half
        costs = pods.setdefault(leaf.pod, [0, 0])
        for side in (0, 1):
            costs[side] += min(sides[side], sides[1 - side] + leaf.up_cables)
    core = [0, 0]
    for pod, costs in pods.items():
        up = cluster.pod_up_cables.get(pod, 0)
        for side in (0, 1):
            core[side] += min(costs[side], costs[1 - side] + up)
    return min(core)


def cut_of_flow(cluster: Cluster) -> int:
    """The smallest cut by the largest flow over all switches and cables, with each half as one vertex."""
    half = _half(cluster)
    folded = nx.Graph()
    folded.add_nodes_from(("first", "second"))

    def fold(vertex: tuple[object, ...]) -> object:
        if vertex[0] != "node":
            return vertex
        return "first" if int(str(vertex[1])) < half else "second"

    for one, other, edge in cluster.graph.edges(data=True):
        ends = fold(one), fold(other)
        known = folded.edges[ends]["capacity"] if folded.has_edge(*ends) else 0
        folded.add_edge(*ends, capacity=known + edge["cables"])
    cut: int = nx.maximum_flow_value(folded, "first", "second")
    return cut


def _hops(cluster: Cluster) -> tuple[HopFigures, ...]:
    """Pairs of nodes by the switches between them, over all rails."""
    pairs: Counter[int | None] = Counter()
    latency_ps: dict[int | None, int] = {}

    def count(one: int, other: int, times: int) -> None:
        switches = cluster.hops(one, other).switches
        pairs[switches] += times
        latency_ps[switches] = max(latency_ps.get(switches, 0), cluster.latency_ps(one, other))

    for rail in range(cluster.rails):
        nodes_at = Counter(cluster.leaf_of(node, rail) for node in range(len(cluster.types)))
        for leaf, nodes in nodes_at.items():
            count(leaf, leaf, nodes * (nodes - 1) // 2)
        for one, other in combinations(nodes_at, 2):
            count(one, other, nodes_at[one] * nodes_at[other])
        for domain in cluster.domains:
            leaves_of = Counter(cluster.leaf_of(node, rail) for node in domain)
            _move(cluster, leaves_of, pairs)
    if pairs[None]:
        local = cluster.local[0]
        latency_ps[None] = local.endpoint_latency_ps + local.latency_ps
    total = sum(pairs.values())
    kinds = sorted((kind for kind in pairs if pairs[kind]), key=lambda kind: -1 if kind is None else kind)
    return tuple(HopFigures(kind, pairs[kind], pairs[kind] / total, latency_ps[kind]) for kind in kinds)


def _move(cluster: Cluster, nodes_at: Counter[int], pairs: Counter[int | None]) -> None:
    """Count the pairs of an NVLink domain as such, and no longer by the leaves of its nodes."""
    for leaf, nodes in nodes_at.items():
        pairs[cluster.hops(leaf, leaf).switches] -= nodes * (nodes - 1) // 2
        pairs[None] += nodes * (nodes - 1) // 2
    for one, other in combinations(nodes_at, 2):
        pairs[cluster.hops(one, other).switches] -= nodes_at[one] * nodes_at[other]
        pairs[None] += nodes_at[one] * nodes_at[other]


def _domains(cluster: Cluster) -> tuple[DomainFigures, ...]:
    kinds: Counter[tuple[int, int, str, float, bool]] = Counter()
    for number, nodes in enumerate(cluster.domains):
        local, has_nvlink = cluster.local[nodes.start], cluster.types[nodes.start].nvlink is not None
        kinds[len(nodes), cluster.domain_gpus(number), local.name, local.bytes_per_s, has_nvlink] += 1
    return tuple(DomainFigures(count, *kind) for kind, count in kinds.items())
