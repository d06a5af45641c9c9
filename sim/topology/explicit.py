"""The builder of fabrics whose switches and cables are listed one by one.

Cables join NICs to leaves, leaves to spines and spines to cores. What cannot be wired as written is noted at
its line, and left out of the graph. Units and pods are what hangs together (sim.topology.graph).
"""

from __future__ import annotations

from collections.abc import Sequence

from sim.base.errors import did_you_mean
from sim.config.cable_end import CableEnd
from sim.config.topology import Cable, Fabric
from sim.topology.graph import (
    TIERS,
    Graph,
    Site,
    Vertex,
    WiringFault,
    builder,
    new_graph,
    number_parts,
    rail_of,
)

_NEIGHBOURS = "cables join NICs to tier 1, tier 1 to tier 2, and tier 2 to tier 3"


@builder("explicit")
def explicit(fabric: Fabric, sites: Sequence[Site]) -> Graph:
    """Switches and cables as they are listed, one by one."""
    wiring = _Wiring(fabric, sites)
    assert isinstance(fabric.cables, list)
    for i, cable in enumerate(fabric.cables):
        wiring.add(f"fabric.cables.{i}", cable)
    graph = wiring.graph
    for vertex, facts in graph.nodes(data=True):
        facts["unit" if vertex[0] == "node" else "pod"] = None
        if facts["tier"] == 1:
            edges = graph[vertex].values()
            facts["rails"] = tuple(sorted({rail for edge in edges for rail in edge.get("rails", ())}))
    number_parts(graph)
    return graph


class _Wiring:
    """A graph while it is being cabled."""

    def __init__(self, fabric: Fabric, sites: Sequence[Site]) -> None:
        self.fabric, self.sites = fabric, sites
        self.graph = new_graph(sites)
        self.switches: dict[str, Vertex] = {}
        self.groups: dict[str, list[int]] = {}
        self.taken: set[tuple[int, int]] = set()
        for number, site in enumerate(sites):
            self.groups.setdefault(site.group, []).append(number)
        for i, switch in enumerate(fabric.switches or ()):
            vertex = (TIERS[switch.tier], switch.name)
            self.switches[switch.name] = vertex
            self.graph.add_node(
                vertex,
                tier=switch.tier,
                name=switch.name,
                radix=switch.radix,
                path=f"fabric.switches.{i}",
            )

    def fault(self, path: str, problem: str, hint: str) -> None:
        """Note what cannot be wired."""
        self.graph.graph["faults"].append(WiringFault(path, problem, hint))

    def add(self, path: str, cable: Cable) -> None:
        """Add the cables of one line."""
        ends = [self._known(f"{path}.{key}", end) for key, end in (("from", cable.from_), ("to", cable.to))]
        if not all(ends):
            return
        switches = [end for end in (cable.from_, cable.to) if end.is_switch]
        if len(switches) == 2:
            self._join(path, cable)
        elif switches:
            nics = cable.to if cable.from_.is_switch else cable.from_
            self._plug(path, cable, nics, self.switches[switches[0].name])
        else:
            self.fault(path, "both ends are NICs", "one end is a switch; for two nodes, use kind: direct")

    def _known(self, path: str, end: CableEnd) -> bool:
        """Whether an end exists; what is wrong with it is noted."""
        if end.is_switch and end.name in self.switches:
            return True
        if end.nodes is None or end.nics is None:
            hint = did_you_mean(end.name, self.switches)
            if end.name in self.groups:
                hint = f"{end.name} is a group of nodes: write {end.name}/NODES/NICS, such as {end.name}/0/0"
            self.fault(path, f"there is no switch '{end.name}'", hint)
            return False
        if end.name not in self.groups:
            hint = did_you_mean(end.name, self.groups)
            if end.name in self.switches:
                hint = f"{end.name} is a switch: write its name alone"
            self.fault(path, f"there is no group of nodes '{end.name}'", hint)
            return False
        members = self.groups[end.name]
        nics = self.sites[members[0]].nics
        for what, last, count in (("node", end.nodes[-1], len(members)), ("NIC", end.nics[-1], nics)):
            if last >= count:
                owner = end.name if what == "node" else f"a node of {end.name}"
                problem = f"there is no {what} {last}: {owner} has {count} {what}{'s' if count != 1 else ''}"
                self.fault(path, problem, f"count from 0 to {count - 1}")
                return False
        return True

    def _join(self, path: str, cable: Cable) -> None:
        """Cable two switches."""
        one, other = self.switches[cable.from_.name], self.switches[cable.to.name]
        tiers = [self.graph.nodes[end]["tier"] for end in (one, other)]
        if abs(tiers[0] - tiers[1]) != 1:
            problem = (
                f"{cable.from_} is on tier {tiers[0]} and {cable.to} on tier {tiers[1]}"
                if one != other
                else f"a cable from {one[1]} to itself"
            )
            self.fault(path, problem, _NEIGHBOURS)
            return
        self._lay(one, other, cable.count, cable.length)

    def _plug(self, path: str, cable: Cable, end: CableEnd, switch: Vertex) -> None:
        """Cable NICs to a leaf, each with its own cable."""
        assert end.nodes is not None
        assert end.nics is not None
        if self.graph.nodes[switch]["tier"] != 1:
            tier = self.graph.nodes[switch]["tier"]
            self.fault(path, f"a NIC cannot go to {switch[1]} on tier {tier}", _NEIGHBOURS)
            return
        if cable.count != 1:
            hint = "take count away; each NIC of the range gets a cable of its own"
            self.fault(f"{path}.count", f"a NIC has one port, not {cable.count}", hint)
            return
        for index in end.nodes:
            node = self.groups[end.name][index]
            for nic in end.nics:
                if (node, nic) in self.taken:
                    problem = f"NIC {nic} of {end.name}/{index} has a cable already"
                    self.fault(path, problem, "a NIC has one port: cable it once")
                    return
                self.taken.add((node, nic))
                self._lay(("node", node), switch, 1, cable.length)
                rail = rail_of(nic, self.sites[node].nics, self.fabric.rails)
                edge = self.graph.edges[("node", node), switch]
                edge["rails"] = tuple(sorted({*edge.get("rails", ()), rail}))

    def _lay(self, one: Vertex, other: Vertex, cables: int, length_m: float) -> None:
        """Add cables between two vertices to those that are there; the longest counts."""
        if self.graph.has_edge(one, other):
            edge = self.graph.edges[one, other]
            edge["cables"] += cables
            edge["length_m"] = max(edge["length_m"], length_m)
        else:
            self.graph.add_edge(one, other, cables=cables, length_m=length_m)
