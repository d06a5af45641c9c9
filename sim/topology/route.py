"""The way of bytes from one node or GPU to another, hop by hop, when nobody else is on it.

Model: a node sends on all its rails at once, a GPU on those beside it; bytes arrive on the rails of the
receiver. A GPU on other rails hands them over by NVLink first (PXN), or they change rail at the spines, as
the fabric says. The rate is that of the slowest hop, efficiencies included; a switch tier counts with all
cables that the sender's traffic may take. `equal_bytes` is the size at which latency and transfer take the
same time: smaller is latency, larger is bandwidth.

Ignores: other traffic, and how evenly routing uses parallel cables.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sim.base.dimensions import PS_PER_S
from sim.base.errors import ConfigError, did_you_mean
from sim.topology.cluster import PS_PER_M, Cluster

_PLACE = re.compile(r"(?P<gpu>gpu[ :-]?)?(?P<number>[0-9]{1,9})")
_MEMBER = re.compile(r"(?P<group>[A-Za-z][A-Za-z0-9_-]*)/(?P<index>[0-9]{1,9})")
HINT = "write a node by its number, as GROUP/NUMBER, or `gpu N`"


@dataclass(frozen=True, slots=True)
class Place:
    """A node, or one GPU of it (counted within the node)."""

    node: int
    gpu: int | None
    name: str


@dataclass(frozen=True, slots=True)
class Hop:
    """From one thing to the next: over which kind of link, how many in parallel, and their joint rate."""

    source: str
    target: str
    link: str
    cables: int
    bytes_per_s: float


@dataclass(frozen=True, slots=True)
class Latency:
    """What passes before the first byte: both ends, switches (or NVLink hops), and fibre."""

    ends_ps: int
    switches: int
    switches_ps: int
    nvlink_ps: int
    fibre_m: float
    fibre_ps: int

    @property
    def total_ps(self) -> int:
        """All of it."""
        return self.ends_ps + self.switches_ps + self.nvlink_ps + self.fibre_ps


@dataclass(frozen=True, slots=True)
class Route:
    """The way between two places; `way` says in words how far apart they are."""

    source: str
    target: str
    way: str
    hops: tuple[Hop, ...]
    latency: Latency
    bytes_per_s: float
    latency_ps: int
    equal_bytes: int


@dataclass(frozen=True, slots=True)
class _End:
    """Where traffic enters or leaves the fabric: NICs of a node on some rails, and their leaves."""

    node: int
    rails: tuple[int, ...]
    nics: int
    leaves: tuple[int, ...]


def place(cluster: Cluster, text: str) -> Place:
    """The place that a text names: `17`, `dgx/17` or `gpu 130`, counted over the whole cluster."""
    member, found = _MEMBER.fullmatch(text), _PLACE.fullmatch(text)
    if member is not None:
        return _member(cluster, text, member["group"], int(member["index"]))
    if found is None:
        raise ConfigError(text, None, None, problem="is no node and no GPU", hint=HINT)
    number = int(found["number"])
    what, count = ("GPU", cluster.gpus) if found["gpu"] else ("node", len(cluster.types))
    if number >= count:
        problem = f"there is no {what} {number}: {cluster.name} has {count}"
        raise ConfigError(text, None, None, problem=problem, hint=f"count from 0 to {count - 1}")
    if not found["gpu"]:
        return Place(number, None, f"node {number}")
    first = 0
    for node, kind in enumerate(cluster.types):
        if number < first + kind.gpus:
            return Place(node, number - first, f"GPU {number}")
        first += kind.gpus
    raise AssertionError(number)


def _member(cluster: Cluster, text: str, group: str, index: int) -> Place:
    members = [node for node, site in enumerate(cluster.sites) if site.group == group]
    if not members:
        groups = dict.fromkeys(site.group for site in cluster.sites)
        problem = f"there is no group of nodes '{group}'"
        raise ConfigError(text, None, None, problem=problem, hint=did_you_mean(group, groups))
    if index >= len(members):
        problem = f"there is no node {index}: {group} has {len(members)}"
        raise ConfigError(text, None, None, problem=problem, hint=f"count from 0 to {len(members) - 1}")
    return Place(members[index], None, f"node {members[index]}")


def route(cluster: Cluster, source: Place, target: Place) -> Route:
    """The way from one place to another."""
    if source == target and source.gpu is not None:
        raise ConfigError(source.name, None, None, problem="both ends are the same GPU", hint="name two")
    if cluster.domain_of(source.node) == cluster.domain_of(target.node):
        return _inside(cluster, source, target)
    if cluster.fabric is None:
        problem = f"{source.name} and {target.name} are on different nodes, and there is no fabric"
        raise ConfigError(cluster.name, None, None, problem=problem, hint="add a fabric to the topology")
    return _outside(cluster, source, target)


def _inside(cluster: Cluster, source: Place, target: Place) -> Route:
    local = cluster.local[source.node]
    senders = min(1 if end.gpu is not None else cluster.types[end.node].gpus for end in (source, target))
    hop = Hop(source.name, target.name, local.name, senders, senders * local.effective_bytes_per_s)
    way = "within a node" if source.node == target.node else "within an NVLink domain"
    latency = Latency(local.endpoint_latency_ps, 0, 0, local.latency_ps, 0.0, 0)
    return _route((source.name, target.name), way, [hop], latency)


def _outside(cluster: Cluster, source: Place, target: Place) -> Route:
    assert cluster.fabric is not None
    assert cluster.link is not None
    own, theirs = _rails(cluster, source), _rails(cluster, target)
    shared = tuple(rail for rail in own if rail in theirs)
    is_handed_over = not shared and cluster.fabric.other_rail == "pxn"
    near = _end(cluster, source.node, shared or (theirs if is_handed_over else own))
    far = _end(cluster, target.node, shared or theirs)
    sender, handover, nvlink_ps = source.name, [], 0
    if is_handed_over:
        local, sender = cluster.local[source.node], f"GPU beside {_rails_text(theirs)}"
        handover = [Hop(source.name, sender, local.name, 1, local.effective_bytes_per_s)]
        nvlink_ps = local.latency_ps
    hops = cluster.hops(near.leaves[0], far.leaves[0])
    fabric_hops = _over_fabric(cluster, (sender, near), (target.name, far), hops.switches)
    way = {0: "NIC to NIC", 1: "over one leaf", 3: "over the spines", 5: "over the cores"}[hops.switches]
    latency = Latency(
        ends_ps=cluster.link.endpoint_latency_ps,
        switches=hops.switches,
        switches_ps=hops.switches * cluster.link.latency_ps,
        nvlink_ps=nvlink_ps,
        fibre_m=hops.length_m,
        fibre_ps=round(hops.length_m * PS_PER_M),
    )
    return _route((source.name, target.name), way, [*handover, *fabric_hops], latency)


def _rails(cluster: Cluster, end: Place) -> tuple[int, ...]:
    """The rails of a node, or those beside one of its GPUs."""
    gpus, rails = cluster.types[end.node].gpus, cluster.rails
    if end.gpu is None:
        return tuple(range(rails))
    first = end.gpu * rails // gpus
    return tuple(range(first, max(first + 1, (end.gpu + 1) * rails // gpus)))


def _end(cluster: Cluster, node: int, rails: tuple[int, ...]) -> _End:
    leaves = dict.fromkeys(cluster.leaf_of(node, rail) for rail in rails)
    return _End(node, rails, len(rails) * cluster.nics_on_rail(node), tuple(leaves))


def _over_fabric(
    cluster: Cluster, source: tuple[str, _End], target: tuple[str, _End], switches: int
) -> list[Hop]:
    """The hops from the NICs of one end, up to what joins both, and down to the NICs of the other."""
    assert cluster.fabric is not None
    assert cluster.link is not None
    rise, fall = _climb(cluster, source[1], switches), _climb(cluster, target[1], switches)
    stops = [source[0], *_stops(cluster, source[1], switches)]
    stops += [*reversed(_stops(cluster, target[1], switches)[: switches // 2]), target[0]]
    cables = [*rise, *reversed(fall)] if switches else [min(rise[0], fall[0])]
    hops = []
    for i, count in enumerate(cables):
        is_sprayed = 0 < i < len(cables) - 1
        reached = cluster.fabric.routing.efficiency if is_sprayed else 1.0
        rate = count * cluster.rate_bytes_per_s * reached
        hops.append(Hop(stops[i], stops[i + 1], cluster.link.name, count, rate))
    return hops


def _climb(cluster: Cluster, end: _End, switches: int) -> list[int]:
    """Cables from NICs to leaves, to spines, to cores, as far as the way goes up."""
    pods = {cluster.leaves[leaf].pod for leaf in end.leaves} if switches else set()
    cables = [end.nics]
    if switches >= 3:
        cables.append(sum(cluster.up_cables(leaf) for leaf in end.leaves))
    if switches >= 5:
        cables.append(sum(cluster.pod_up_cables[pod] for pod in pods))
    return cables


def _stops(cluster: Cluster, end: _End, switches: int) -> list[str]:
    """What is passed on the way up: leaves, spines and cores, by name where it is one, else counted."""
    spines = sorted(
        {spine for leaf in end.leaves if leaf >= 0 for spine, _ in cluster.leaf_spine_cables(leaf)}
    )
    names = [
        _counted([cluster.leaves[leaf].name for leaf in end.leaves if leaf >= 0], "leaves"),
        _counted([cluster.spines[spine].name for spine in spines], "spines"),
        _counted([core.name for core in cluster.cores], "cores"),
    ]
    return names[: (switches + 1) // 2]


def _counted(names: list[str], noun: str) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} {noun}"


def _rails_text(rails: tuple[int, ...]) -> str:
    return f"rail {rails[0]}" if len(rails) == 1 else f"rails {rails[0]}-{rails[-1]}"


def _route(ends: tuple[str, str], way: str, hops: list[Hop], latency: Latency) -> Route:
    rate = min(hop.bytes_per_s for hop in hops)
    equal = round(latency.total_ps * rate / PS_PER_S)
    return Route(*ends, way, tuple(hops), latency, rate, latency.total_ps, equal)
