"""Where replicas sit: which GPUs of which node each of them takes.

Model: a replica takes `tp` neighbouring GPUs of one NVLink domain (a node, or a rack of them): a part of a
node, or whole nodes. One that is larger than a domain takes whole domains, one after the other, below the
same leaves as long as there are such. Pools are seated in the order of the scenario, each by its own rule;
see sim.config.place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import NamedTuple

from sim.config.pool import Pool
from sim.network.fabric import Port
from sim.serving.plan import Seat
from sim.topology.cluster import Cluster


class Spot(NamedTuple):
    """Room for a replica: GPUs of one domain from the first one given, or several domains as a whole."""

    domains: tuple[int, ...]
    first_gpu: int


@dataclass(frozen=True, slots=True)
class NoRoom:
    """A pool that does not fit: its index, the replicas that do, and those wanted."""

    pool: int
    seated: int
    wanted: int


def lanes(cluster: Cluster, pools: Sequence[Pool]) -> int:
    """Rails that every replica uses as a whole or not at all, so that they can be one link.

    Rails are only merged where packets are sprayed and all rails are alike: as many NICs on each (which a
    fabric's form sees to), and leaves of the same nodes with as many cables up. Without a fabric each GPU
    counts as a rail.
    """
    gpus = min(node.gpus for node in cluster.types)
    if cluster.fabric is None:
        return gcd(gpus, *(_on_its_last_node(pool.tp, gpus) for pool in pools))
    rails = cluster.rails
    if cluster.fabric.routing.kind != "spray" or not _rails_are_alike(cluster):
        return 1
    width = gcd(rails, *(max(1, _on_its_last_node(pool.tp, gpus) * rails // gpus) for pool in pools))
    shared = len(cluster.leaves[0].rails) if cluster.leaves else 1
    return width if width % shared == 0 or shared % width == 0 else gcd(width, shared)


def _on_its_last_node(tp: int, gpus: int) -> int:
    """How many GPUs of the last of its nodes a replica takes, where it begins with a node."""
    return tp % gpus or gpus


def _rails_are_alike(cluster: Cluster) -> bool:
    alike: dict[tuple[int, ...], set[tuple[int, int]]] = {}
    for leaf in cluster.leaves:
        alike.setdefault(leaf.nodes, set()).add((leaf.up_cables, len(leaf.rails)))
    together = {node: nodes for nodes in alike for node in nodes}
    return all(len(kinds) == 1 for kinds in alike.values()) and all(
        together[node] == nodes for nodes in alike for node in nodes
    )


def misfit(cluster: Cluster, pool: Pool) -> tuple[str, str, str] | None:
    """What keeps a pool's replicas from ever being seated: key, problem and remedy."""
    node, domain = min(each.gpus for each in cluster.types), _domain_gpus(cluster)
    fits = [tp for tp in range(1, node) if node % tp == 0]
    fits += [*range(node, domain, node), *range(domain, pool.tp + domain + 1, domain)]
    if pool.tp not in fits:
        problem = f"{pool.tp} GPUs are neither an equal part of the {node} of a node nor whole nodes"
        if pool.tp > domain > node:
            problem = f"{pool.tp} GPUs are not whole NVLink domains of {domain}"
        below, above = max(tp for tp in fits if tp < pool.tp), min(tp for tp in fits if tp > pool.tp)
        return "tp", problem, f"use {below} or {above}"
    if pool.tp > domain and pool.place.kind == "per-domain":
        problem = f"a replica of {pool.tp} GPUs takes {pool.tp // domain} NVLink domains of {domain}"
        return "place", problem, "write place: packed"
    return None


def seat(cluster: Cluster, pools: Sequence[Pool]) -> list[tuple[Seat, ...]] | NoRoom:
    """The seats of every pool, or the first pool that does not fit."""
    width = lanes(cluster, pools)
    taken: list[set[int]] = [set() for _ in cluster.domains]
    seats: list[tuple[Seat, ...]] = []
    for i, pool in enumerate(pools):
        free = _chosen(cluster, pool, _free(cluster, pool, taken))
        if len(free) < pool.replicas:
            return NoRoom(i, len(free), pool.replicas)
        placed = []
        for spot in free[: pool.replicas]:
            placed.append(Seat(_ports(cluster, spot, pool.tp, width)))
            for domain in spot.domains:
                taken[domain].update(_gpus(spot, pool.tp))
        seats.append(tuple(placed))
    return seats


def _domain_gpus(cluster: Cluster) -> int:
    """GPUs of the largest NVLink domain."""
    return max(cluster.domain_gpus(domain) for domain in range(len(cluster.domains)))


def _gpus(spot: Spot, tp: int) -> range:
    """The GPUs of a spot in each of its domains."""
    return range(spot.first_gpu, spot.first_gpu + tp // len(spot.domains))


def _free(cluster: Cluster, pool: Pool, taken: Sequence[set[int]]) -> list[Spot]:
    """Free places of `tp` GPUs for a pool, in order."""
    domain_gpus = _domain_gpus(cluster)
    wanted = _wanted(pool)
    used = [_blocked(cluster, domain, taken[domain], wanted) for domain in range(len(cluster.domains))]
    if pool.tp <= domain_gpus:
        return [
            spot for domain in range(len(used)) for spot in _inside(cluster, domain, pool.tp, used[domain])
        ]
    idle = [i for i, gpus in enumerate(used) if not gpus and cluster.domain_gpus(i) == domain_gpus]
    idle.sort(key=lambda domain: wanted.get(cluster.domains[domain].start, domain))
    return _side_by_side(cluster, idle, pool.tp // domain_gpus)


def _wanted(pool: Pool) -> dict[int, int]:
    """The nodes that a pool is confined to, each with its turn; none if it may go everywhere."""
    nodes = [node for first, last in pool.place.nodes for node in range(first, last + 1)]
    return {node: turn for turn, node in enumerate(dict.fromkeys(nodes))}


def _blocked(cluster: Cluster, domain: int, taken: set[int], wanted: dict[int, int]) -> set[int]:
    """The GPUs of a domain that a pool cannot have: taken, or on a node where it may not go."""
    if not wanted:
        return taken
    return taken | {gpu for gpu, (node, _) in enumerate(_places(cluster, domain)) if node not in wanted}


def _places(cluster: Cluster, domain: int) -> list[tuple[int, int]]:
    """The GPUs of a domain in order, as (node, GPU of the node)."""
    return [(node, gpu) for node in cluster.domains[domain] for gpu in range(cluster.types[node].gpus)]


def _inside(cluster: Cluster, domain: int, tp: int, used: set[int]) -> list[Spot]:
    """Free places in one domain; those of whole nodes begin with a node."""
    node_gpus = cluster.types[cluster.domains[domain].start].gpus
    step = 1 if tp % node_gpus else node_gpus
    first, end, free = 0, cluster.domain_gpus(domain), []
    while first + tp <= end:
        blocked = [gpu for gpu in range(first, first + tp) if gpu in used]
        if blocked:
            first = -(-(blocked[-1] + 1) // step) * step
        else:
            free.append(Spot((domain,), first))
            first += tp
    return free


def _side_by_side(cluster: Cluster, idle: Sequence[int], number: int) -> list[Spot]:
    """Places of so many whole domains: first those within a unit, then what is left of the units."""
    units: dict[int, list[int]] = {}
    for domain in idle:
        units.setdefault(cluster.unit_of(cluster.domains[domain].start), []).append(domain)
    runs, rest = [], []
    for members in units.values():
        whole = len(members) // number * number
        runs.append(members[:whole])
        rest.extend(members[whole:])
    return [
        Spot(tuple(run[i : i + number]), 0)
        for run in (*runs, rest)
        for i in range(0, len(run) // number * number, number)
    ]


def _chosen(cluster: Cluster, pool: Pool, free: list[Spot]) -> list[Spot]:
    """Free places in the order in which the pool takes them; those it may not take are left out."""
    place = pool.place
    if place.kind == "spread" and len(free) > pool.replicas:
        return [free[k * len(free) // pool.replicas] for k in range(pool.replicas)]
    if place.kind == "per-domain":
        most = place.prefill if pool.role == "prefill" else place.decode
        return [spot for spots in _by_domain(free).values() for spot in spots[:most]]
    if place.kind == "nodes":
        turns = _wanted(pool)
        return sorted(free, key=lambda spot: turns[_places(cluster, spot.domains[0])[spot.first_gpu][0]])
    return free


def _by_domain(free: list[Spot]) -> dict[int, list[Spot]]:
    spots: dict[int, list[Spot]] = {}
    for spot in free:
        spots.setdefault(spot.domains[0], []).append(spot)
    return spots


def _ports(cluster: Cluster, spot: Spot, tp: int, width: int) -> tuple[Port, ...]:
    """The port of each rank of a replica at a spot."""
    ports = []
    for domain in spot.domains:
        places = _places(cluster, domain)
        for node, gpu in (places[i] for i in _gpus(spot, tp)):
            gpus = cluster.types[node].gpus
            ports.append(Port(node, gpu * (cluster.rails or gpus) // gpus // width))
    return tuple(ports)
