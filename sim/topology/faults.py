"""Checks of a fabric's graph: what could not be built, or would not carry traffic as it is simulated.

Each check is one small function that yields faults, with a remedy, at the line where the cause is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

import networkx as nx

from sim.base.errors import listed
from sim.base.registry import Registry
from sim.config.topology import Fabric
from sim.topology.graph import Graph, Site, Vertex, WiringFault, above, of_tier, ports_used

check: Registry[Callable[[Graph, Fabric], Iterator[WiringFault]]] = Registry("topology check")


def before_building(fabric: Fabric, sites: Sequence[Site]) -> Iterator[WiringFault]:
    """What keeps a fabric from being built at all: too few NICs, or the wrong number of nodes."""
    fewest = min(site.nics for site in sites)
    if fewest < fabric.rails:
        yield WiringFault(
            "fabric.rails",
            f"{fabric.rails} rails, but a node has only {fewest} NICs",
            f"use {fewest} rails, or a node type with more NICs" if fewest else "use a node type with NICs",
        )
        return
    for nics in sorted({site.nics for site in sites if site.nics % fabric.rails}):
        fitting = [str(rails) for rails in range(1, fewest + 1) if nics % rails == 0]
        yield WiringFault(
            "fabric.rails",
            f"{fabric.rails} rails do not divide the {nics} NICs of a node",
            f"use {listed(fitting, 'or')} rails",
        )
    if fabric.kind == "direct":
        yield from _two_nodes(sites)


def _two_nodes(sites: Sequence[Site]) -> Iterator[WiringFault]:
    if len(sites) != 2:
        problem = (
            f"a direct fabric joins two nodes, and there {'is' if len(sites) == 1 else 'are'} {len(sites)}"
        )
        yield WiringFault("fabric.kind", problem, "write count: 2, or a fabric with switches")
    elif sites[0].nics != sites[1].nics:
        problem = f"one node has {sites[0].nics} NICs and the other {sites[1].nics}"
        yield WiringFault("fabric.kind", problem, "a direct fabric joins two nodes with equally many NICs")


def faults(graph: Graph, fabric: Fabric) -> list[WiringFault]:
    """Everything about this fabric that could not be built, or could not carry traffic."""
    found: list[WiringFault] = list(graph.graph["faults"])
    for name in check if not found else ():
        found.extend(check[name](graph, fabric))
    return found


@check("ports")
def too_few_ports(graph: Graph, _fabric: Fabric) -> Iterator[WiringFault]:
    """More cables at a switch than it has ports."""
    used = ports_used(graph)
    worst: dict[str, Vertex] = {}
    for vertex in used:
        path = graph.nodes[vertex]["path"]
        if path not in worst or used[vertex] > used[worst[path]]:
            worst[path] = vertex
    for path, vertex in worst.items():
        facts = graph.nodes[vertex]
        if used[vertex] > facts["radix"]:
            is_one_of_many = path == f"fabric.{vertex[0]}"
            yield WiringFault(
                f"{path}.radix",
                f"{f'a {vertex[0]}' if is_one_of_many else facts['name']} needs {used[vertex]} ports "
                f"and has {facts['radix']}",
                f"use a switch with {used[vertex]} ports, or fewer cables",
            )


@check("tiers")
def loose_uplinks(_graph: Graph, fabric: Fabric) -> Iterator[WiringFault]:
    """Uplinks that lead nowhere, and tiers that no uplink leads to."""
    for lower, upper in (("leaf", "spine"), ("spine", "core")):
        below, over = getattr(fabric, lower), getattr(fabric, upper)
        if below and below.uplinks and not over:
            problem = f"{below.uplinks} uplinks, and there is no {upper} above"
            yield WiringFault(f"fabric.{lower}.uplinks", problem, f"add a {upper}, or write uplinks: 0")
        elif over and not (below and below.uplinks):
            problem = f"no {lower} has a cable up to a {upper}"
            hint = f"write uplinks of the {lower}" if below else f"add a {lower}"
            yield WiringFault(f"fabric.{upper}", problem, f"{hint}, or take the {upper} away")


@check("cabled")
def bare_nics(graph: Graph, fabric: Fabric) -> Iterator[WiringFault]:
    """NICs without a cable, and rails of a node that go to several leaves."""
    if fabric.kind != "explicit":
        return
    bare: list[str] = []
    for vertex in of_tier(graph, 0):
        homes: dict[int, list[Vertex]] = {rail: [] for rail in range(fabric.rails)}
        for leaf, edge in above(graph, vertex):
            for rail in edge["rails"]:
                homes[rail].append(leaf)
        name = graph.nodes[vertex]["name"]
        bare += [f"rail {rail} of {name}" for rail, leaves in homes.items() if not leaves]
        for rail, leaves in homes.items():
            if len(leaves) > 1:
                names = listed([graph.nodes[leaf]["name"] for leaf in leaves])
                problem = f"rail {rail} of {name} goes to {names}"
                hint = "the NICs of a rail share a leaf: write as many rails as NICs, or move a cable"
                yield WiringFault("fabric.cables", problem, hint)
                return
    if bare:
        problem = f"no cable at {listed(bare, most=3)}"
        yield WiringFault("fabric.cables", problem, "add a cable from each NIC to a leaf")


@check("used")
def unused_switches(graph: Graph, fabric: Fabric) -> Iterator[WiringFault]:
    """Listed switches that no cable goes to."""
    if fabric.kind == "explicit":
        for vertex, count in ports_used(graph).items():
            if not count:
                problem = f"no cable goes to {graph.nodes[vertex]['name']}"
                yield WiringFault(graph.nodes[vertex]["path"], problem, "cable it, or take it away")


@check("rails")
def crossed_rails(graph: Graph, _fabric: Fabric) -> Iterator[WiringFault]:
    """Leaves at which the nodes do not all have the same rails."""
    for leaf in of_tier(graph, 1):
        rails_at: dict[tuple[int, ...], str] = {}
        for vertex, edge in graph[leaf].items():
            if graph.nodes[vertex]["tier"] == 0:
                rails_at.setdefault(edge["rails"], graph.nodes[vertex]["name"])
        if len(rails_at) > 1:
            (first, one), (second, other), *_ = rails_at.items()
            name = graph.nodes[leaf]["name"]
            problem = f"{name} has {_rails(first)} of {one} and {_rails(second)} of {other}"
            yield WiringFault("fabric.cables", problem, "cable the same rails of all nodes to a leaf")


def _rails(rails: Sequence[int]) -> str:
    return f"rail{'s' if len(rails) > 1 else ''} {listed([str(rail) for rail in rails])}"


@check("reach")
def unreachable(graph: Graph, fabric: Fabric) -> Iterator[WiringFault]:
    """NICs that cannot reach each other over switches: of a rail, or of all if bytes change rail there."""
    if any(loose_uplinks(graph, fabric)):
        return  # which is said already
    switches = graph.subgraph([vertex for vertex in graph if vertex[0] != "node"])
    parts = list(nx.connected_components(switches))
    leaves = of_tier(graph, 1)
    if fabric.other_rail == "spine":
        count = sum(any(vertex[0] == "leaf" for vertex in part) for part in parts)
        if count > 1:
            problem = f"the rails fall into {count} parts, and bytes are to change rail over the switches"
            yield WiringFault("fabric.other_rail", problem, "write other_rail: pxn, or join them by spines")
            return
    for rail in range(fabric.rails):
        of_rail = {leaf for leaf in leaves if rail in graph.nodes[leaf]["rails"]}
        count = sum(bool(of_rail & part) for part in parts)
        if count > 1:
            problem = f"the fabric falls into {count} parts that cannot reach each other"
            yield WiringFault("fabric", problem, "add a tier above, or uplinks to it")
            return


@check("valleys")
def detours(graph: Graph, fabric: Fabric) -> Iterator[WiringFault]:
    """Leaves with no spine in common and no core above both: bytes would have to come down in between."""
    switches = graph.subgraph([vertex for vertex in graph if vertex[0] != "node"])
    part_of = {leaf: i for i, part in enumerate(nx.connected_components(switches)) for leaf in part}
    rails = [None] if fabric.other_rail == "spine" else range(fabric.rails)
    for rail in rails:
        ways: dict[frozenset[Vertex], Vertex] = {}
        for leaf in of_tier(graph, 1):
            if rail is None or rail in graph.nodes[leaf]["rails"]:
                ways.setdefault(frozenset(spine for spine, _ in above(graph, leaf)), leaf)
        cores = {
            spines: frozenset(core for spine in spines for core, _ in above(graph, spine)) for spines in ways
        }
        for one, other in combinations(ways, 2):
            are_joined = part_of[ways[one]] == part_of[ways[other]]
            if are_joined and not one & other and not cores[one] & cores[other]:
                names = [graph.nodes[ways[spines]]["name"] for spines in (one, other)]
                path = "fabric.leaf.uplinks" if fabric.leaf else "fabric.cables"
                yield WiringFault(
                    path,
                    f"{names[0]} and {names[1]} have no spine in common, and no core above both",
                    "give each leaf a cable to every spine of its pod, or add cores",
                )
                return


@check("even")
def uneven_rails(graph: Graph, fabric: Fabric) -> Iterator[WiringFault]:
    """Leaves of the same nodes with more cables up than others."""
    if fabric.uneven or fabric.kind != "explicit":
        return
    alike: dict[tuple[Vertex, ...], tuple[str, int]] = {}
    for leaf in of_tier(graph, 1):
        nodes = tuple(vertex for vertex in graph[leaf] if graph.nodes[vertex]["tier"] == 0)
        up, name = sum(edge["cables"] for _, edge in above(graph, leaf)), graph.nodes[leaf]["name"]
        other, expected = alike.setdefault(nodes, (name, up))
        if up != expected:
            yield WiringFault(
                "fabric.cables",
                f"{name} has {up} cables up, and {other}, which serves the same nodes, has {expected}",
                "give both equally many, or write uneven: true in the fabric if it is built so",
            )
            return
