"""The way of bytes from one node or GPU to another, link by link, when nobody else is on it.

Model: the links, the latency and the rate are those of a handoff between the two (sim.network.fabric). A GPU
stands for its port, a node for all of its ports, each of which sends to its like; of a node and a GPU only
the port of that GPU takes part. All begin at once with equal shares of the bytes, one for each queue pair
(or one for all of a port, where they are pooled), and share links max-min fairly; the rate is what moves
divided by the time until the last of them has ended.
`equal_bytes` is the size at which latency and transfer take the same time: smaller is latency, larger is
bandwidth.

Ignores: other traffic, and how KV heads are dealt out where ranks differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sim.base.dimensions import PS_PER_S
from sim.base.errors import ConfigError
from sim.network.fabric import Fabric, Port
from sim.network.maxmin import MaxMin, Rated
from sim.network.path import Path
from sim.topology.cluster import PS_PER_M, Cluster
from sim.topology.place import Place

_FAR = {0: "NIC to NIC", 1: "over one leaf", 3: "over the spines", 5: "over the cores"}


@dataclass(frozen=True, slots=True)
class Crossing:
    """Links of one kind that are crossed, by the name of the first, and their joint rate.

    `links` is their number, `link` what they are in the catalogue (None for host memory and caps), `cables`
    how many of those in parallel, and `times` how often bytes cross each.
    """

    name: str
    kind: str
    links: int
    link: str | None
    cables: int
    times: int
    bytes_per_s: float


@dataclass(frozen=True, slots=True)
class Latency:
    """What passes before the first byte: both ends, switches, and fibre; and what adds to it inside of nodes.

    `inside_ps` is between GPUs over the link `inside` (NVLink, else PCIe), `host_ps` between GPUs and the
    memory of their hosts.
    """

    ends_ps: int
    switches: int
    switches_ps: int
    fibre_m: float
    fibre_ps: int
    inside: str
    inside_ps: int
    host_ps: int

    @property
    def total_ps(self) -> int:
        """All of it."""
        return self.ends_ps + self.switches_ps + self.fibre_ps + self.inside_ps + self.host_ps


@dataclass(frozen=True, slots=True)
class Route:
    """The way between two places; `way` says in words how far apart they are.

    `held_back_by` is the link that keeps the last byte from coming sooner.
    """

    source: str
    target: str
    way: str
    links: tuple[Crossing, ...]
    latency: Latency
    bytes_per_s: float
    held_back_by: str
    latency_ps: int
    equal_bytes: int


def route(fabric: Fabric, source: Place, target: Place) -> Route:
    """The way from one place to another over a fabric that nobody uses."""
    cluster = fabric.cluster
    if source == target and source.gpu is not None:
        raise ConfigError(source.name, None, None, problem="both ends are the same GPU", hint="name two")
    is_inside = cluster.domain_of(source.node) == cluster.domain_of(target.node)
    if cluster.fabric is None and not is_inside:
        problem = f"{source.name} and {target.name} are on different nodes, and there is no fabric"
        raise ConfigError(cluster.name, None, None, problem=problem, hint="add a fabric to the topology")
    ends = _ends(fabric, source, target)
    pairs = fabric.pairs(source.node, target.node)
    parts = [[fabric.gpu_to_gpu(*ports, pair) for pair in pairs] for ports in ends]
    paths = [path for part in parts for path in part]
    latency = max((_latency(fabric, *ports) for ports in ends), key=lambda one: one.total_ps)
    way = _FAR[latency.switches]
    if is_inside:
        way = "within a node" if source.node == target.node else "within an NVLink domain"
    rate, narrowest = _together(parts if fabric.is_pooled else [[path] for path in paths])
    return Route(
        source=source.name,
        target=target.name,
        way=way,
        links=tuple(_crossings(fabric, ends[0], paths)),
        latency=latency,
        bytes_per_s=rate * PS_PER_S,
        held_back_by=fabric.described[narrowest].name,
        latency_ps=latency.total_ps,
        equal_bytes=round(latency.total_ps * rate),
    )


def _ends(fabric: Fabric, source: Place, target: Place) -> list[tuple[Port, Port]]:
    """The ports that send, each with the one that it sends to."""
    one, other = (_group(fabric, end) for end in (source, target))
    if one is None and other is None:
        return [(Port(source.node, group), Port(target.node, group)) for group in range(fabric.groups)]
    first = one if one is not None else other
    last = other if other is not None else one
    assert first is not None
    assert last is not None
    return [(Port(source.node, first), Port(target.node, last))]


def _group(fabric: Fabric, end: Place) -> int | None:
    """The lane of a GPU; None for a node, which has all."""
    if end.gpu is None:
        return None
    gpus = fabric.cluster.types[end.node].gpus
    return end.gpu * (fabric.cluster.rails or gpus) // gpus // fabric.lanes


def _together(parts: Sequence[Sequence[Path]]) -> tuple[float, int]:
    """What parts move in a picosecond until the last has ended, and the link that holds that back.

    A part is as large as it has paths, which take from what is left of it.
    """
    solver: MaxMin[Rated] = MaxMin()
    flows = [[Rated(path.of_a_flow().links) for path in paths] for paths in parts]
    for one in flows:
        for flow in one:
            solver.add(flow)
    left = {number: float(len(paths)) for number, paths in enumerate(parts)}
    lasts_ps, narrowest = 0.0, 0
    while left:
        rates = {number: sum(flow.rate for flow in flows[number]) for number in left}
        first = min(left, key=lambda number: left[number] / rates[number])
        step_ps = left[first] / rates[first]
        lasts_ps += step_ps
        left = {number: rest - rates[number] * step_ps for number, rest in left.items() if number != first}
        fastest = max(flows[first], key=lambda flow: flow.rate)
        assert fastest.bottleneck is not None
        narrowest = fastest.bottleneck.id
        for flow in flows[first]:
            solver.remove(flow)
    return sum(map(len, parts)) / lasts_ps, narrowest


def _latency(fabric: Fabric, source: Port, target: Port) -> Latency:
    """What the wait between two ports is made of."""
    cluster = fabric.cluster
    local, link = cluster.local[source.node], cluster.link
    if cluster.domain_of(source.node) == cluster.domain_of(target.node):
        return Latency(local.endpoint_latency_ps, 0, 0, 0.0, 0, local.name, local.latency_ps, 0)
    assert cluster.fabric is not None
    assert link is not None
    is_handed_over = fabric.is_handed_over(source, target)
    first = target.group if is_handed_over else source.group
    leaves = (
        cluster.leaf_of(port.node, group * fabric.lanes)
        for port, group in ((source, first), (target, target.group))
    )
    hops = cluster.hops(*leaves)
    hosts = () if cluster.fabric.gpudirect else (cluster.host[source.node], cluster.host[target.node])
    return Latency(
        ends_ps=link.endpoint_latency_ps,
        switches=hops.switches,
        switches_ps=hops.switches * link.latency_ps,
        fibre_m=hops.length_m,
        fibre_ps=round(hops.length_m * PS_PER_M),
        inside=local.name,
        inside_ps=local.latency_ps if is_handed_over else 0,
        host_ps=sum(host.endpoint_latency_ps + host.latency_ps for host in hosts),
    )


def _crossings(fabric: Fabric, ends: tuple[Port, Port], paths: Sequence[Path]) -> Iterator[Crossing]:
    """What some paths cross, in order: like links of several paths together, then what caps each flow."""
    alike: dict[tuple[str, int], dict[int, int]] = {}
    for path in paths:
        places: Counter[str] = Counter()
        for number, times in Counter(path.counted).items():
            kind = fabric.described[number].kind
            alike.setdefault((kind, places[kind]), {})[number] = times
            places[kind] += 1
    for (kind, _), numbers in alike.items():
        first, times = next(iter(numbers.items()))
        rate = sum(fabric.described[number].capacity_bytes_per_s for number in numbers)
        link, each = _cable(fabric.cluster, kind, ends)
        cables = round(rate / each) if each else len(numbers)
        name = fabric.described[first].name
        yield Crossing(name, kind, len(numbers), link, cables, times, rate / times)
    for number, flows in Counter(path.cap.id for path in paths if path.cap is not None).items():
        cap = fabric.described[number]
        rate = flows * cap.capacity_bytes_per_s
        yield Crossing(cap.name, cap.kind, flows, None, flows, 1, rate)


def _cable(cluster: Cluster, kind: str, ends: tuple[Port, Port]) -> tuple[str | None, float]:
    """The catalogue's name of a kind of link on this way, and what one of it carries."""
    tier, _, way = kind.rpartition("_")
    if tier in {"nvlink", "pcie"}:
        end = ends[way == "down"].node
        link = cluster.local[end] if tier == "nvlink" else cluster.host[end]
        return link.name, link.effective_bytes_per_s
    if tier not in {"nic", "leaf", "spine"}:
        return None, 0.0
    assert cluster.link is not None
    assert cluster.fabric is not None
    reached = 1.0 if tier == "nic" else cluster.fabric.routing.efficiency
    return cluster.link.name, cluster.rate_bytes_per_s * reached
