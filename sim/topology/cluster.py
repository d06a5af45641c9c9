"""The cluster as the simulator sees it: numbered nodes, rails, switches and pods, with capacities.

Built once from a topology file and sealed. All that concerns cables is read off the graph of the fabric, so
that it holds for any kind of fabric. Rates are bytes per second and per direction; what a link can carry is
its nominal rate times its measured efficiency. Light takes 5 ns for a metre of fibre (a refractive index of
1.5); a cable's delay comes on top of the latency per switch of the link, which may hold that of a short one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from sim.base.errors import ConfigError, ConfigErrors, UnknownNameError
from sim.catalog import Catalog, Link, Node
from sim.config.topology import Fabric, Topology
from sim.topology import builders  # noqa: F401 - it registers the kinds of fabrics
from sim.topology.faults import before_building, faults
from sim.topology.graph import Graph, Site, WiringFault, builder
from sim.topology.lending import Lending, lendings
from sim.topology.wiring import Core, Hops, Leaf, Spine, Wiring

PS_PER_M = 5000


@dataclass(frozen=True)
class Cluster:
    """Nodes in order, and the fabric that joins them.

    `types[i]` is the catalogue node of node i, `local[i]` the link between its GPUs (NVLink, else PCIe),
    `host[i]` that from each GPU to host memory, `sites[i]` where it was written. `copies[i]` is the most that
    one copy over `host[i]` gets, None where that link is all that limits it. `domains` are the nodes of each
    NVLink domain, `link` is that of the fabric, `lent` what each node lends to the pool of KV blocks. Cables
    carry as much down as up.
    """

    name: str
    types: tuple[Node, ...]
    local: tuple[Link, ...]
    host: tuple[Link, ...]
    fabric: Fabric | None
    link: Link | None
    sites: tuple[Site, ...]
    domains: tuple[range, ...]
    copies: tuple[float | None, ...]
    lent: tuple[Lending, ...] = ()

    @property
    def gpus(self) -> int:
        """GPUs of the whole cluster."""
        return sum(node.gpus for node in self.types)

    @property
    def gpu_kinds(self) -> dict[str, int]:
        """GPUs of the whole cluster by their kind."""
        kinds: dict[str, int] = {}
        for node in self.types:
            kinds[node.gpu] = kinds.get(node.gpu, 0) + node.gpus
        return kinds

    @property
    def rails(self) -> int:
        """Rails of the fabric; each node has one NIC or several on each."""
        return self.fabric.rails if self.fabric else 0

    @cached_property
    def graph(self) -> Graph:
        """The networkx graph of the fabric."""
        assert self.fabric is not None
        return builder[self.fabric.kind](self.fabric, self.sites)

    @cached_property
    def wiring(self) -> Wiring:
        """The switches with their cables."""
        return Wiring(self.graph, self.rails)

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The leaves in order, each with its unit, pod, rails, nodes and cables up."""
        return self.wiring.leaves

    @property
    def spines(self) -> tuple[Spine, ...]:
        """The spines in order, each with its pod and cables up."""
        return self.wiring.spines

    @property
    def cores(self) -> tuple[Core, ...]:
        """The cores in order."""
        return self.wiring.cores

    def leaf_of(self, node: int, rail: int) -> int:
        """The leaf that the NICs of a node on a rail are cabled to; NO_LEAF where there is no switch."""
        return self.wiring.leaf_of[node][rail]

    @cached_property
    def spines_in(self) -> dict[int, tuple[int, ...]]:
        """The spines of each pod, in order."""
        spines: dict[int, list[int]] = {}
        for spine in self.spines:
            spines.setdefault(spine.pod, []).append(spine.number)
        return {pod: tuple(numbers) for pod, numbers in spines.items()}

    def nics_on_rail(self, node: int) -> int:
        """NICs of a node on each rail; they are parallel."""
        return self.types[node].nics // self.rails

    @property
    def rate_bytes_per_s(self) -> float:
        """What one cable carries in one direction, efficiency included."""
        assert self.link is not None
        return self.link.effective_bytes_per_s

    def rail_bytes_per_s(self, node: int) -> float:
        """What all NICs of a node on one rail carry in one direction, efficiency included."""
        return self.rate_bytes_per_s * self.nics_on_rail(node)

    @property
    def queue_pair_bytes_per_s(self) -> float | None:
        """The most that one queue pair gets, as the fabric says or else its link; None: NICs limit it."""
        assert self.fabric is not None
        assert self.link is not None
        return self.fabric.routing.queue_pair_rate or self.link.queue_pair_bytes_per_s

    def hops(self, one: int, other: int) -> Hops:
        """The way between two leaves by number: its switches, and metres of cable from NIC to NIC."""
        return self.wiring.hops(one, other)

    def latency_ps(self, one: int, other: int) -> int:
        """What passes before the first byte between NICs at two leaves: ends, switches and fibre."""
        assert self.link is not None
        hops = self.hops(one, other)
        return (
            self.link.endpoint_latency_ps
            + hops.switches * self.link.latency_ps
            + round(hops.length_m * PS_PER_M)
        )

    @cached_property
    def _domain_of(self) -> tuple[int, ...]:
        return tuple(number for number, nodes in enumerate(self.domains) for _ in nodes)

    def domain_of(self, node: int) -> int:
        """The NVLink domain of a node."""
        return self._domain_of[node]

    def domain_gpus(self, domain: int) -> int:
        """GPUs of an NVLink domain."""
        return sum(self.types[node].gpus for node in self.domains[domain])

    def unit_of(self, node: int) -> int:
        """The scalable unit of a node."""
        return self._units[node] if self.fabric else 0

    @cached_property
    def _units(self) -> tuple[int, ...]:
        return tuple(self.graph.nodes["node", node]["unit"] for node in range(len(self.types)))

    @cached_property
    def pod_up_cables(self) -> dict[int, int]:
        """Cables up from all spines of each pod."""
        return {pod: sum(self.spines[i].up_cables for i in spines) for pod, spines in self.spines_in.items()}


def build(form: Topology, catalog: Catalog) -> Cluster:
    """Join a topology file with the catalogue, and refuse what could not be cabled.

    Raises ConfigErrors that point into the file.
    """
    cluster = assemble(form, catalog)
    if cluster.fabric is not None:
        found = list(before_building(cluster.fabric, cluster.sites))
        _refuse(form, found or faults(cluster.graph, cluster.fabric))
    return cluster


def assemble(form: Topology, catalog: Catalog) -> Cluster:
    """The cluster of a topology file, its names looked up, its wiring not yet checked."""
    errors: list[ConfigError] = []
    types: list[Node] = []
    sites: list[Site] = []
    domains: list[range] = []
    for i, group in enumerate(form.nodes):
        try:
            node = catalog.nodes[group.type]
        except UnknownNameError as unknown:
            errors.append(form.document.error(f"nodes.{i}.type", unknown.problem, unknown.hint))
            continue
        first = len(types)
        types.extend([node] * group.count)
        sites.extend(Site(group.name, index, node.nics) for index in range(group.count))
        domains.extend(
            range(start, start + group.domain_nodes)
            for start in range(first, first + group.count, group.domain_nodes)
        )
        if group.domain_nodes > 1 and node.nvlink is None:
            problem = f"{group.type} has no NVLink that {group.domain_nodes} nodes could share"
            hint = "take domain_nodes away, or use a node type with NVLink"
            errors.append(form.document.error(f"nodes.{i}.domain_nodes", problem, hint))
    link = None
    try:
        link = catalog.links[form.fabric.link] if form.fabric else None
        local = tuple(catalog.links[node.nvlink or node.pcie] for node in types)
        host = tuple(catalog.links[node.pcie] for node in types)
    except UnknownNameError as unknown:
        errors.append(form.document.error("fabric.link", unknown.problem, unknown.hint))
    lent = lendings(form, types, errors) if not errors else ()
    if errors:
        raise ConfigErrors(errors)
    parts = (tuple(types), local, host, form.fabric, link, tuple(sites), tuple(domains))
    return Cluster(form.name, *parts, _copies(form, host), lent)


def _copies(form: Topology, host: Sequence[Link]) -> tuple[float | None, ...]:
    """The most that one copy over each link to a host gets: as a group of nodes says, else the link."""
    said = [group.copy_engine_rate for group in form.nodes for _ in range(group.count)]
    return tuple(rate or link.copy_engine_bytes_per_s for rate, link in zip(said, host, strict=True))


def _refuse(form: Topology, found: list[WiringFault]) -> None:
    if found:
        raise ConfigErrors([form.document.error(fault.path, fault.problem, fault.hint) for fault in found])
