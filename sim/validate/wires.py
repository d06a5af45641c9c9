"""Published rates of links, collectives and single products against those of the catalogue.

Model: an all-reduce's bus bandwidth is 2 (n - 1) / n times its bytes over its time, as in NCCL's tests. A
copy and a transfer between two nodes are told at the rate that a large one gets over its link, or over all
NICs of the node. A product is told in FLOP per second.
A row is `fitted` where the source that the catalogue names for this link is the source of the row.
Ignores: software between the link and who measured.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from sim.base.errors import UnsupportedError
from sim.catalog.entry import Entry as Part
from sim.catalog.link import Link
from sim.catalog.load import load_catalog
from sim.catalog.matrix import Matrix
from sim.catalog.node import Node
from sim.catalog.precision import precision
from sim.timing.collective import Wire, ring_part
from sim.timing.gemm import gemm
from sim.timing.placement import Shard, place
from sim.timing.rates import Rates
from sim.validate.expression import Prediction
from sim.validate.nccl import by_nccl
from sim.validate.publishedentry import Entry
from sim.validate.servedruns import node_of

GB, TERA = 10**9, 10**12
SIZES = {"kib": 2**10, "mib": 2**20, "gib": 2**30, "gb": 10**9}
NODES_OF_NICS = (("p6-b200", "p6-b200"), (r"p5\.48", "p5"))


def all_reduce(entry: Entry) -> Prediction | None:
    """NCCL's bus bandwidth of an all-reduce in one node, or over several."""
    if not re.search(r"all.?reduce.* busbw", entry.metric) or entry.gpus is None or "NVL72" in entry.hardware:
        return None
    size = re.search(r"(\d+) ?(KiB|MiB|GiB|GB)", entry.metric)
    if size is None:
        raise UnsupportedError("the size that was summed is not said")
    count = int(size[1]) * SIZES[size[2].casefold()]
    catalog = load_catalog()
    nodes = re.match(r"(\d+) nodes", entry.parallelism)
    domains = int(nodes[1]) if nodes else 1
    node = catalog.nodes["p6-b200" if "EFA" in entry.hardware else node_of(entry)]
    if node.nvlink is None:
        raise UnsupportedError(f"{node.title} has no NVLink")
    link = catalog.links[node.nvlink]
    each = entry.gpus // domains
    wire = _wire(node, domains) if domains > 1 else None
    time_s = by_nccl(link, each, wire).curve()(count) / TERA
    where = "in one node" if wire is None else "over nodes"
    rate = ring_part(entry.gpus) * count / time_s / GB
    return Prediction(rate, f"all-reduce {where}", _is_source(entry, [link]))


def copy(entry: Entry) -> Prediction | None:
    """nvbandwidth: one copy between a GPU and its host, or its neighbour."""
    words = f"{entry.metric} {entry.workload}"
    if "nvbandwidth" not in words or "bidirectional" in words:
        return None
    catalog = load_catalog()
    if "DGX Station" in entry.hardware:
        raise UnsupportedError("the catalogue has no DGX Station")
    node = catalog.nodes[node_of(entry)]
    name = node.nvlink if "device-to-device" in entry.metric else node.pcie
    if name is None:
        raise UnsupportedError(f"{node.title} has no NVLink")
    return _of_link(entry, catalog.links[name], 1, "copies")


def node_pair(entry: Entry) -> Prediction | None:
    """All NICs of a node to those of another."""
    if entry.plain_unit != "GB/s" or "blocks" in entry.metric or "block size" in entry.metric:
        return None
    catalog = load_catalog()
    if entry.metric.startswith("KV transfer bandwidth between two nodes"):
        found = re.search(r"(\d+)x (\d+) Gb/s RoCE", entry.hardware)
        if found is None:
            return None
        link = catalog.links["roce-200" if found[2] == "200" else "roce-400-spectrumx"]
        return _of_link(entry, link, int(found[1]), "transfers between nodes")
    if "Transfer Engine" not in entry.metric:
        return None
    for pattern, name in NODES_OF_NICS:
        if re.search(pattern, entry.hardware):
            node = catalog.nodes[name]
            link = catalog.links[node.nic_link]
            if "CPU" in entry.metric and node.dram_rdma_bytes_per_s is not None:
                rate = node.dram_rdma_bytes_per_s / GB
                return Prediction(rate, "transfers between nodes", _is_source(entry, [node]))
            return _of_link(entry, link, node.nics, "transfers between nodes")
    raise UnsupportedError(f"no node of the catalogue stands for {entry.hardware}")


def one_rail(entry: Entry) -> Prediction | None:
    """One NIC to another."""
    if not ("NIXL GPU-to-GPU" in entry.metric or "NCCL bandwidth per NDR" in entry.metric):
        return None
    if "TCP" in entry.hardware or "100 Gb/s" in entry.hardware:
        raise UnsupportedError("no link of the catalogue stands for it")
    return _of_link(entry, load_catalog().links["infiniband-ndr"], 1, "one rail")


def product(entry: Entry) -> Prediction | None:
    """One large product, in TFLOP per second."""
    size = re.match(r"(\d+)x(\d+)x(\d+)", entry.workload)
    if size is None or entry.unit != "TFLOPS":
        return None
    m, n, k = (int(number) for number in size.groups())
    catalog, weights = load_catalog(), entry.precision.casefold()
    placement = place(catalog, Shard(catalog.models["llama-3.1-8b"], weights, "bf16", 1), node_of(entry))
    time_ps = gemm(Rates.of(placement), Matrix("mlp", n, k), precision(weights))(m)
    return Prediction(2 * m * n * k / time_ps, "products")


def _wire(node: Node, domains: int) -> Wire:
    link = load_catalog().links[node.nic_link]
    latency_ps = link.endpoint_latency_ps + 3 * link.latency_ps
    return Wire(domains, node.nics * link.effective_bytes_per_s, latency_ps)


def _of_link(entry: Entry, link: Link, count: int, group: str) -> Prediction:
    return Prediction(count * link.effective_bytes_per_s / GB, group, _is_source(entry, [link]))


def _is_source(entry: Entry, parts: Iterable[Part]) -> bool:
    """Whether the catalogue names the place of an entry as the source of a value of these parts."""
    sources = load_catalog().sources
    named = {leaf.source for part in parts for leaf in part.provenance.values()}
    places = {_place(sources[name].url) for name in named if name in sources and sources[name].url}
    return _place(entry.source_url) in places


def _place(url: str) -> str:
    """Where a page is: its site and path, or its repository, whose pages print the same numbers again."""
    parts = url.casefold().removeprefix("https://").partition("#")[0].rstrip("/").split("/")
    return "/".join(parts[:3] if parts[0] == "github.com" else parts)
