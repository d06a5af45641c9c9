"""The links that bytes cross between nodes, and the path of a transfer over them.

Model: `spray` routing. Packets of a flow go over all parallel links, so the uplinks of a leaf act as one
link, and so do the uplinks of a pod (capacity times the routing's efficiency). The rails that a replica
uses together carry equal shares and are merged into one link of their joint capacity; `lanes` is how
many rails go into one. A transfer arrives on the rail of its receiver; a sender on another rail hands the
bytes to its neighbour on that rail over NVLink first (PXN), so fabric paths stay within a rail.
A link that cannot saturate, because all NICs that can reach it together carry no more than it does, holds
nobody back: it is left out of the sharing and only counted.
Latency is a delay before the first byte: the link's end-to-end part, and its part per switch.
Units: bytes, bytes per second for people, bytes per picosecond for the solver.
Ignores: packet headers (in the measured efficiency), congestion control, NVLink's share of PXN hops.
"""

from __future__ import annotations

from dataclasses import dataclass

from sim.network.maxmin import Link
from sim.network.path import Path
from sim.tables.schema import PS_PER_S
from sim.topology.cluster import Cluster


@dataclass(slots=True)
class FabricLink:
    """A (merged) link by name and kind, with what it carries and what can reach it."""

    name: str
    kind: str
    capacity_bytes_per_s: float
    reach_bytes_per_s: float = 0.0

    @property
    def can_saturate(self) -> bool:
        """Whether the NICs that can reach the link carry more than it does."""
        return self.reach_bytes_per_s > self.capacity_bytes_per_s * (1 + 1e-12)


class Fabric:
    """All links of a cluster, numbered, and the paths over them (worked out once each)."""

    def __init__(self, cluster: Cluster, lanes: int) -> None:
        self.cluster = cluster
        self.lanes = lanes
        self.groups = cluster.rails // lanes if lanes else 0
        self.described: list[FabricLink] = []
        self._ids: dict[tuple[str, int, int], int] = {}
        self._paths: dict[tuple[int, int, int], Path] = {}
        self._middles: dict[tuple[int, int, int], Path] = {}
        self._add_nvlink()
        if cluster.fabric:
            self._add_nics()
            self._add_leaves()
            self._add_pods()
        self.links = [
            Link(i, described.capacity_bytes_per_s / PS_PER_S) for i, described in enumerate(self.described)
        ]

    def path(self, source: int, target: int, group: int) -> Path:
        """The way from node `source` to node `target` on rail group `group`."""
        key = (source, target, group)
        path = self._paths.get(key)
        if path is None:
            path = self._paths[key] = self._find(source, target, group)
        return path

    def _find(self, source: int, target: int, group: int) -> Path:
        if source == target:
            nvlink = self._ids["nvlink", source, 0]
            local = self.cluster.local[source]
            return Path((self.links[nvlink],), (nvlink,), local.endpoint_latency_ps + local.latency_ps)
        middle = self._between(self.cluster.unit_of(source), self.cluster.unit_of(target), group)
        tx, rx = self._ids["nic_tx", source, group], self._ids["nic_rx", target, group]
        return Path(
            (self.links[tx], *middle.links, self.links[rx]), (tx, *middle.counted, rx), middle.latency_ps
        )

    def _between(self, unit: int, target_unit: int, group: int) -> Path:
        """The way between the NICs of two units: through a leaf, and the spines and cores above it."""
        key = (unit, target_unit, group)
        if key not in self._middles:
            pod, target_pod = self.cluster.pod_of(unit), self.cluster.pod_of(target_unit)
            places = []
            if unit != target_unit:
                places = [("leaf_up", unit, group), ("leaf_down", target_unit, group)]
            if pod != target_pod:
                places[1:1] = [("spine_up", pod, 0), ("spine_down", target_pod, 0)]
            counted = tuple(self._ids[place] for place in places)
            held_by = tuple(self.links[i] for i in counted if self.described[i].can_saturate)
            link = self.cluster.link
            assert link is not None
            switches = 1 + len(places)  # a leaf; two leaves and a spine; those, a spine and a core
            latency_ps = link.endpoint_latency_ps + switches * link.latency_ps
            self._middles[key] = Path(held_by, counted, latency_ps)
        return self._middles[key]

    def _add(self, kind: str, place: tuple[int, int], name: str, capacity: float, reach: float) -> None:
        self._ids[kind, *place] = len(self.described)
        self.described.append(FabricLink(name, kind, capacity, reach))

    def _add_nvlink(self) -> None:
        """One NVLink switch (or PCIe) per node; what leaves all its GPUs together is its capacity."""
        for i, (node, local) in enumerate(zip(self.cluster.types, self.cluster.local, strict=True)):
            rate = local.effective_bytes_per_s * node.gpus
            self._add("nvlink", (i, 0), f"node {i} NVLink", rate, float("inf"))

    def _add_nics(self) -> None:
        rate = self.cluster.rate_bytes_per_s * self.lanes
        for i in range(len(self.cluster.types)):
            for group in range(self.groups):
                rails = self._rails(group)
                self._add("nic_tx", (i, group), f"node {i} NIC tx{rails}", rate, float("inf"))
                self._add("nic_rx", (i, group), f"node {i} NIC rx{rails}", rate, float("inf"))

    def _add_leaves(self) -> None:
        """The uplinks of the leaves of one unit, per rail group; reached by the NICs of the unit."""
        assert self.cluster.fabric is not None
        rate = self.cluster.rate_bytes_per_s
        efficiency = self.cluster.fabric.routing.efficiency
        nodes_in = self._nodes_per_unit()
        for unit, nodes in enumerate(nodes_in):
            for group in range(self.groups):
                cables = sum(
                    self.cluster.leaf_up_cables[unit, rail]
                    for rail in range(group * self.lanes, (group + 1) * self.lanes)
                )
                reach = nodes * self.lanes * rate
                for way in ("up", "down"):
                    name = f"unit {unit} leaf {way}{self._rails(group)}"
                    self._add(f"leaf_{way}", (unit, group), name, cables * rate * efficiency, reach)

    def _add_pods(self) -> None:
        """The uplinks of the spines of one pod; reached by all NICs of the pod."""
        assert self.cluster.fabric is not None
        rate = self.cluster.rate_bytes_per_s
        efficiency = self.cluster.fabric.routing.efficiency
        nodes_in = self._nodes_per_unit()
        per_pod = self.cluster.fabric.units_per_pod or 1
        for pod, cables in self.cluster.pod_up_cables.items():
            nodes = sum(nodes_in[pod * per_pod : (pod + 1) * per_pod])
            reach = nodes * self.cluster.rails * rate
            for way in ("up", "down"):
                name = f"pod {pod} spine {way}"
                self._add(f"spine_{way}", (pod, 0), name, cables * rate * efficiency, reach)

    def _nodes_per_unit(self) -> list[int]:
        units: list[int] = []
        for node in range(len(self.cluster.types)):
            unit = self.cluster.unit_of(node)
            if unit == len(units):
                units.append(0)
            units[unit] += 1
        return units

    def _rails(self, group: int) -> str:
        """The rails of a group, for names: nothing where all rails are in one."""
        if self.groups == 1:
            return ""
        first = group * self.lanes
        return f" rail {first}" if self.lanes == 1 else f" rails {first}-{first + self.lanes - 1}"
