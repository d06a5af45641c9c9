"""The cluster as the simulator sees it: numbered nodes, rails, units and pods, with capacities.

Built once from a topology file and sealed. Rates are bytes per second and per direction; what a link can
carry is its nominal rate times its measured efficiency.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from sim.base.errors import ConfigError, ConfigErrors, UnknownNameError
from sim.catalog import Catalog, Link, Node
from sim.config.topology import Fabric, Topology
from sim.topology import graph as graphs


@dataclass(frozen=True)
class Cluster:
    """Nodes in order, and the fabric that joins them.

    `types[i]` is the catalogue node of node i, `local[i]` the link between its GPUs (NVLink, else PCIe),
    `link` that of the fabric. Up-capacities are taken from the cables of the graph; down equals up.
    """

    name: str
    types: tuple[Node, ...]
    local: tuple[Link, ...]
    fabric: Fabric | None
    link: Link | None

    @property
    def gpus(self) -> int:
        """GPUs of the whole cluster."""
        return sum(node.gpus for node in self.types)

    @property
    def rails(self) -> int:
        """Rails of the fabric: NICs that each node has in it."""
        return self.fabric.rails if self.fabric else 0

    @cached_property
    def graph(self) -> graphs.Graph:
        """The networkx graph of the fabric."""
        assert self.fabric is not None
        return graphs.builder[self.fabric.kind](self.fabric, len(self.types))

    def unit_of(self, node: int) -> int:
        """The scalable unit of a node."""
        return node // self.fabric.nodes_per_unit if self.fabric else 0

    def pod_of(self, unit: int) -> int:
        """The pod of a scalable unit."""
        return unit // self.fabric.units_per_pod if self.fabric else 0

    @property
    def rate_bytes_per_s(self) -> float:
        """What one cable carries in one direction, efficiency included."""
        assert self.link is not None
        return self.link.bytes_per_s * self.link.efficiency

    @cached_property
    def leaf_up_cables(self) -> dict[tuple[int, int], int]:
        """Cables up from each leaf, by (unit, rail)."""
        return {
            (vertex[1], vertex[2]): self._cables_up(vertex) for vertex in self.graph if vertex[0] == "leaf"
        }

    @cached_property
    def pod_up_cables(self) -> dict[int, int]:
        """Cables up from all spines of each pod."""
        cables: dict[int, int] = {}
        for vertex in self.graph:
            if vertex[0] == "spine":
                cables[vertex[1]] = cables.get(vertex[1], 0) + self._cables_up(vertex)
        return cables

    def _cables_up(self, switch: object) -> int:
        tier = self.graph.nodes[switch]["tier"]
        return sum(
            edge["cables"]
            for upper, edge in self.graph[switch].items()
            if self.graph.nodes[upper]["tier"] > tier
        )


def build(form: Topology, catalog: Catalog) -> Cluster:
    """Join a topology file with the catalogue, and refuse what could not be cabled.

    Raises ConfigErrors that point into the file.
    """
    errors: list[ConfigError] = []
    types: list[Node] = []
    for i, group in enumerate(form.nodes):
        try:
            types.extend([catalog.nodes[group.type]] * group.count)
        except UnknownNameError as unknown:
            errors.append(form.document.error(f"nodes.{i}.type", unknown.problem, unknown.hint))
    link = None
    try:
        link = catalog.links[form.fabric.link] if form.fabric else None
    except UnknownNameError as unknown:
        errors.append(form.document.error("fabric.link", unknown.problem, unknown.hint))
    if errors:
        raise ConfigErrors(errors)
    local = tuple(catalog.links[node.nvlink or node.pcie] for node in types)
    cluster = Cluster(form.name, tuple(types), local, form.fabric, link)
    errors = [form.document.error(fault.path, fault.problem, fault.hint) for fault in _faults(cluster)]
    if errors:
        raise ConfigErrors(errors)
    return cluster


def _faults(cluster: Cluster) -> list[graphs.WiringFault]:
    if cluster.fabric is None:
        return []
    found = graphs.faults(cluster.graph, cluster.fabric)
    short = min(node.nics for node in cluster.types)
    if short < cluster.fabric.rails:
        found.append(
            graphs.WiringFault(
                "fabric.rails",
                f"{cluster.fabric.rails} rails, but a node has only {short} NICs",
                f"use {short} rails, or a node type with more NICs",
            )
        )
    return found
