"""What bytes cross between GPUs, host memory and NVMe of a cluster: the path of every kind of transfer.

Model: rails that every replica uses together are merged into one *lane* where they are alike, so a transfer
striped over them is one flow; `group` numbers the lanes of a node. A port is a lane of a node: its GPUs, with
their NVLink ports, PCIe and NICs. A transfer crosses

- between GPUs of one NVLink domain: the NVLink ports of both sides (the switch between them carries all
  ports at once and holds nobody back);
- over the fabric with GPUDirect RDMA: NICs of both sides and the switches between. It arrives on the lane of
  its receiver. A sender on another lane hands the bytes to its neighbour over NVLink first (PXN), or sends
  them up to the spines, as the fabric says; where the leaves of both serve a rail together neither is needed;
- over the fabric without GPUDirect: on each side also PCIe, and host memory twice (in and out);
- between GPU and host memory: PCIe and host memory; over the fabric to or from the memory of another host,
  NICs and switches in place of PCIe;
- between the memories of two hosts: both memories, NICs and switches;
- between NVMe and a GPU of its host with GPUDirect Storage: NVMe and PCIe; without, also host memory twice;
- between NVMe and host memory: both. Writes cross NVMe and, where it is known, what it takes in.

What leaves a host's memory over its NICs also crosses what hosts were seen to send from there. Two caps hold
for each flow on its own: that of its queue pairs, one on each NIC of its lane, wherever it crosses NICs; and
that of copy engines, one of each GPU of its lane, wherever it is copied between GPU and host on its way.

Between switches the routing decides (sim.network.spray, sim.network.hashed). A link that cannot saturate is
only counted. Latency is a delay before the first byte: the link's ends, its switches and its fibre.
The bandwidth of host memory stands for what CPUs can copy: of a bounce through it only the two crossings are
counted, since no measured rate of copies by CPUs was found.
Ignores: packet headers (in the measured efficiency), congestion control, PCIe switches (a GPU and its NIC
share one, which carries both), traffic between sockets, how long a drive takes to find the first byte, and
hosts' memories within one NVLink domain, which are reached over NICs as any other.
"""

from __future__ import annotations

from typing import NamedTuple

from sim.base.errors import UnsupportedError
from sim.catalog import Link as CatalogLink
from sim.network.hashed import Hashed
from sim.network.links import FabricLink, Links
from sim.network.maxmin import Link
from sim.network.path import Cap, Path, tightest
from sim.network.spray import Spray
from sim.tables.uses import Ends
from sim.topology.cluster import Cluster
from sim.topology.wiring import NO_LEAF


class Port(NamedTuple):
    """A lane of a node."""

    node: int
    group: int


class Nics(NamedTuple):
    """The NICs of a port: number, links out and in, their leaves, and what caps their queue pairs.

    Ports at the same leaves are at the same `place`.
    """

    number: int
    tx: Link
    rx: Link
    leaves: tuple[int, ...]
    place: int
    cap: Cap | None


class Fabric:
    """Paths over the links of a cluster.

    `lanes` is the number of rails in a lane (without a fabric, of GPUs); 0 puts all into one.
    """

    def __init__(self, cluster: Cluster, lanes: int, seed: int = 0) -> None:
        self.cluster = cluster
        self.lanes = lanes or cluster.rails or cluster.types[0].gpus
        self.groups = (cluster.rails or cluster.types[0].gpus) // self.lanes
        self.table = Links()
        self._ends: list[Nics | None] = [None] * (len(cluster.types) * self.groups)
        self._places: dict[tuple[int, ...], int] = {}
        self._middles: dict[tuple[int, int], Path] = {}
        self._latencies: dict[tuple[int, int], int] = {}
        self._route: Spray | Hashed | None = None
        routing = cluster.fabric.routing if cluster.fabric else None
        if routing is not None:
            sprays = routing.kind == "spray"
            self._route = Spray(cluster, self.table) if sprays else Hashed(cluster, self.table, seed)
        self.is_fixed = routing is None or routing.kind == "spray"
        self._domains = [cluster.domain_of(node) for node in range(len(cluster.types))]
        self._goes_straight = cluster.fabric is not None and cluster.fabric.gpudirect
        self._goes_by_spine = cluster.fabric is not None and cluster.fabric.other_rail == "spine"
        self.queue_pairs = routing.qps if routing is not None else 1
        self.is_pooled = routing is not None and routing.bytes == "pooled"

    @property
    def described(self) -> list[FabricLink]:
        """All links that have been crossed, by number."""
        return self.table.described

    @property
    def links(self) -> list[Link]:
        """The same as the solver sees them."""
        return self.table.solver

    def pairs(self, source: int, target: int) -> range:
        """The queue pairs of a transfer between GPUs of two nodes on a lane; a domain has one way."""
        return range(1 if self._domains[source] == self._domains[target] else self.queue_pairs)

    def sending(self, node: int) -> int:
        """How many flows leave a node over its NICs now."""
        ends, first = self._ends, node * self.groups
        return sum(len(nics.tx.flows) for nics in ends[first : first + self.groups] if nics)

    def spare(self, node: int) -> float:
        """What all NICs of a node together would give one flow more on each now, in bytes per picosecond."""
        ends, first = self._ends, node * self.groups
        links = [nics.tx for nics in ends[first : first + self.groups] if nics]
        return (
            sum([link.capacity / (len(link.flows) + 1) for link in links])
            if len(links) == self.groups
            else 0.0
        )

    def gpu_to_gpu(self, source: Port, target: Port, queue_pair: int = 0) -> Path:
        """Between GPUs: over NVLink inside a domain, over the fabric else."""
        if self._domains[source.node] == self._domains[target.node]:
            local = self.cluster.local[source.node]
            numbers = [self._gpu_local(source, "tx"), self._gpu_local(target, "rx")]
            return self.table.path(numbers, local.endpoint_latency_ps + local.latency_ps)
        is_handed_over = source.group != target.group and self.is_handed_over(source, target)
        if self._goes_straight and not is_handed_over:
            return self._nic_to_nic(source, target, queue_pair)
        sender, before, after, copies = source, [], [], None
        if is_handed_over:
            sender = Port(source.node, target.group)
            before = [self._gpu_local(source, "tx"), self._gpu_local(sender, "rx")]
        if not self._goes_straight:
            before += self._out_of_gpu(sender)
            after = self._into_gpu(target)
            copies = tightest(
                self._copy_cap(sender, self.queue_pairs), self._copy_cap(target, self.queue_pairs)
            )
        middle = self._nic_to_nic(sender, target, queue_pair)
        latency_ps = self.wait_ps(source, target)
        return self.table.path([*before, *middle.counted, *after], latency_ps, tightest(middle.cap, copies))

    def nic_links(self, port: Port) -> tuple[Link, Link]:
        """The NICs of a port as the solver sees them, out and in."""
        nics = self._nics(port)
        return nics.tx, nics.rx

    def wait_ps(self, source: Port, target: Port) -> int:
        """What passes before the first byte between GPUs, whatever way the bytes go."""
        cluster, form = self.cluster, self.cluster.fabric
        local = cluster.local[source.node]
        inside_ps = local.endpoint_latency_ps + local.latency_ps
        if cluster.domain_of(source.node) == cluster.domain_of(target.node):
            return inside_ps
        assert form is not None
        is_handed_over = source.group != target.group and self.is_handed_over(source, target)
        sender = Port(source.node, target.group) if is_handed_over else source
        latency_ps = self._leaf_latency_ps(self._nics(sender).leaves[0], self._nics(target).leaves[0])
        if is_handed_over:
            latency_ps += local.latency_ps
        if not form.gpudirect:
            latency_ps += self._host_latency_ps(source.node) + self._host_latency_ps(target.node)
        return latency_ps

    def is_handed_over(self, source: Port, target: Port) -> bool:
        """Whether bytes change to the lane of their receiver over NVLink before they leave the node (PXN).

        They need not where the leaves at both ends serve a rail together, for those reach each other as the
        leaves of one rail do.
        """
        if source.group == target.group or self._goes_by_spine:
            return False
        one, other = self._nics(source).leaves[0], self._nics(target).leaves[0]
        if NO_LEAF in (one, other):
            return True
        return set(self.cluster.leaves[one].rails).isdisjoint(self.cluster.leaves[other].rails)

    def gpu_to_dram(self, source: Port, target: int | None = None, queue_pair: int = 0) -> Path:
        """From GPUs to the memory of a host: their own over PCIe, another over the fabric."""
        host_ps = self._host_latency_ps(source.node)
        if target is None or target == source.node:
            numbers = [self._gpu_host(source, "up"), self._dram(source.node)]
            return self.table.path(numbers, host_ps, self._copy_cap(source))
        middle = self._nic_to_nic(source, Port(target, source.group), queue_pair)
        if self._goes_straight:
            return self.table.path([*middle.counted, self._dram(target)], middle.latency_ps, middle.cap)
        numbers = [*self._out_of_gpu(source), *middle.counted, self._dram(target)]
        cap = tightest(middle.cap, self._copy_cap(source, self.queue_pairs))
        return self.table.path(numbers, middle.latency_ps + host_ps, cap)

    def dram_to_gpu(self, source: int, target: Port, queue_pair: int = 0) -> Path:
        """From the memory of a host to GPUs: its own over PCIe, others over the fabric."""
        host_ps = self._host_latency_ps(target.node)
        if source == target.node:
            numbers = [self._dram(source), self._gpu_host(target, "down")]
            return self.table.path(numbers, host_ps, self._copy_cap(target))
        middle = self._nic_to_nic(Port(source, target.group), target, queue_pair)
        numbers = [self._dram(source), *self._dram_rdma(source), *middle.counted]
        if self._goes_straight:
            return self.table.path(numbers, middle.latency_ps, middle.cap)
        cap = tightest(middle.cap, self._copy_cap(target, self.queue_pairs))
        return self.table.path([*numbers, *self._into_gpu(target)], middle.latency_ps + host_ps, cap)

    def dram_to_dram(self, source: int, target: int, lane: int, queue_pair: int = 0) -> Path:
        """From the memory of a host to that of another, over the NICs of a lane of both."""
        middle = self._nic_to_nic(Port(source, lane), Port(target, lane), queue_pair)
        numbers = [self._dram(source), *self._dram_rdma(source), *middle.counted, self._dram(target)]
        return self.table.path(numbers, middle.latency_ps, middle.cap)

    def nvme_to_gpu(self, node: int, target: Port, gpudirect_storage: bool = True) -> Path:
        """From NVMe of a host to its own GPUs, straight or through host memory."""
        bounce = [] if gpudirect_storage else [self._dram(node)] * 2
        cap = None if gpudirect_storage else self._copy_cap(target)
        numbers = [self._nvme(node), *bounce, self._gpu_host(target, "down")]
        return self.table.path(numbers, self._host_latency_ps(node), cap)

    def gpu_to_nvme(self, source: Port, gpudirect_storage: bool = True) -> Path:
        """From GPUs to NVMe of their own host, straight or through host memory."""
        node = source.node
        bounce = [] if gpudirect_storage else [self._dram(node)] * 2
        cap = None if gpudirect_storage else self._copy_cap(source)
        numbers = [self._gpu_host(source, "up"), *bounce, *self._into_nvme(node)]
        return self.table.path(numbers, self._host_latency_ps(node), cap)

    def nvme_to_dram(self, node: int) -> Path:
        """From NVMe of a host to its memory."""
        return self.table.path([self._nvme(node), self._dram(node)], self._host_latency_ps(node))

    def dram_to_nvme(self, node: int) -> Path:
        """From the memory of a host to its NVMe."""
        return self.table.path([self._dram(node), *self._into_nvme(node)], self._host_latency_ps(node))

    def _nic_to_nic(self, source: Port, target: Port, queue_pair: int) -> Path:
        """From NICs to NICs, which always can hold a flow back, over the switches between them."""
        groups, ends = self.groups, self._ends
        one = ends[source.node * groups + source.group] or self._nics(source)
        other = ends[target.node * groups + target.group] or self._nics(target)
        if not self.is_fixed:
            middle = self._between(one, other, queue_pair)
        else:
            middle = self._middles.get((one.place, other.place)) or self._between(one, other, 0)
        return Path(
            (one.tx, *middle.links, other.rx),
            (one.tx.id, *middle.counted, other.rx.id),
            middle.latency_ps,
            one.cap,
        )

    def _between(self, one: Nics, other: Nics, queue_pair: int) -> Path:
        """What lies between the NICs of two ports; the same for all at these leaves where it is fixed."""
        assert self._route is not None
        way: list[int] = []
        if one.leaves != other.leaves:
            way = self._route.way(one.leaves, other.leaves, (one.number, other.number, queue_pair))
        middle = self.table.path(way, self._leaf_latency_ps(one.leaves[0], other.leaves[0]))
        if self.is_fixed:
            self._middles[one.place, other.place] = middle
        return middle

    def _leaf_latency_ps(self, one: int, other: int) -> int:
        """Latency between NICs at two leaves."""
        latency_ps = self._latencies.get((one, other))
        if latency_ps is None:
            latency_ps = self._latencies[one, other] = self.cluster.latency_ps(one, other)
        return latency_ps

    def _out_of_gpu(self, source: Port) -> list[int]:
        """From GPUs to the NICs of their host without GPUDirect: over PCIe into host memory, out of it."""
        node = source.node
        return [self._gpu_host(source, "up"), *[self._dram(node)] * 2, *self._dram_rdma(node)]

    def _into_gpu(self, target: Port) -> list[int]:
        """From the NICs of a host into its GPUs without GPUDirect: into host memory, out of it, over PCIe."""
        return [*[self._dram(target.node)] * 2, self._gpu_host(target, "down")]

    def _nics(self, port: Port) -> Nics:
        """The NICs of a port."""
        number = port.node * self.groups + port.group
        nics = self._ends[number]
        if nics is None:
            rails = self._rails(port)
            leaves = tuple(dict.fromkeys(self.cluster.leaf_of(port.node, rail) for rail in rails))
            ends = Ends((port.node,), rails, tuple(leaf for leaf in leaves if leaf != NO_LEAF))
            tx, rx = self._nic(port, "tx", ends), self._nic(port, "rx", ends)
            place, links = self._places.setdefault(leaves, len(self._places)), self.links
            nics = Nics(number, links[tx], links[rx], leaves, place, self._pair_cap(port))
            self._ends[number] = nics
        return nics

    def _pair_cap(self, port: Port) -> Cap | None:
        """What caps a flow that has a queue pair on each NIC of a port."""
        rate = self.cluster.queue_pair_bytes_per_s
        if rate is None:
            return None
        nics = self.lanes * self.cluster.nics_on_rail(port.node)
        return self.table.cap("queue_pair", "queue pair of a flow", rate * nics)

    def _copy_cap(self, port: Port, flows: int = 1) -> Cap | None:
        """What caps each of some flows that a copy engine of each GPU of a port moves in equal parts."""
        rate = self.cluster.copies[port.node]
        if rate is None:
            return None
        gpus = self.cluster.types[port.node].gpus / self.groups
        return self.table.cap("copy_engine", "copy engine of a flow", rate * gpus / flows)

    def _host_latency_ps(self, node: int) -> int:
        link = self.cluster.host[node]
        return link.endpoint_latency_ps + link.latency_ps

    def _nic(self, port: Port, way: str, ends: Ends) -> int:
        rate = self.cluster.rail_bytes_per_s(port.node) * self.lanes
        name = f"node {port.node} NIC {way}{self._lane_name(port)}"
        return self.table.make((f"nic_{way}", *port), name, rate, ends)

    def _gpu_local(self, port: Port, way: str) -> int:
        """The NVLink (or, without NVLink, PCIe) ports of the GPUs of a port, one way."""
        return self._per_gpu("nvlink", port, way, self.cluster.local[port.node])

    def _gpu_host(self, port: Port, way: str) -> int:
        """The PCIe (or C2C) links of the GPUs of a port, one way."""
        return self._per_gpu("pcie", port, way, self.cluster.host[port.node])

    def _per_gpu(self, kind: str, port: Port, way: str, link: CatalogLink) -> int:
        place = (f"{kind}_{way}", *port)
        number = self.table.get(place)
        if number is None:
            gpus = self.cluster.types[port.node].gpus / self.groups
            name = f"node {port.node} {link.title} {way}{self._lane_name(port)}"
            ends = Ends((port.node,), self._rails(port))
            number = self.table.make(place, name, link.effective_bytes_per_s * gpus, ends)
        return number

    def _dram(self, node: int) -> int:
        rate = self.cluster.types[node].dram_bytes_per_s
        return self.table.make(("dram", node), f"node {node} host memory", rate, Ends((node,)))

    def _dram_rdma(self, node: int) -> list[int]:
        """What a host was seen to send from memory through all its NICs, where that is known."""
        rate = self.cluster.types[node].dram_rdma_bytes_per_s
        if rate is None:
            return []
        name = f"node {node} RDMA from host memory"
        return [self.table.make(("dram_rdma", node), name, rate, Ends((node,)))]

    def _nvme(self, node: int) -> int:
        rate = self.cluster.types[node].nvme_bytes_per_s
        if rate is None:
            raise UnsupportedError(
                f"{self.cluster.types[node].title} has no NVMe that is known", "host memory"
            )
        return self.table.make(("nvme", node), f"node {node} NVMe", rate, Ends((node,)))

    def _into_nvme(self, node: int) -> list[int]:
        """What is written crosses what the drives take in, where that is known, and the drives."""
        rate, drives = self.cluster.types[node].nvme_write_bytes_per_s, self._nvme(node)
        if rate is None:
            return [drives]
        name = f"node {node} NVMe writes"
        return [self.table.make(("nvme_write", node), name, rate, Ends((node,))), drives]

    def _rails(self, port: Port) -> tuple[int, ...]:
        """The rails of a port; none without a fabric."""
        if not self.cluster.rails:
            return ()
        return tuple(range(port.group * self.lanes, (port.group + 1) * self.lanes))

    def _lane_name(self, port: Port) -> str:
        """The rails (without a fabric, GPUs) of a port, for names: nothing where all are in one."""
        if self.groups == 1:
            return ""
        what, first = "rail" if self.cluster.rails else "GPU", port.group * self.lanes
        return f" {what} {first}" if self.lanes == 1 else f" {what}s {first}-{first + self.lanes - 1}"
