"""Where replicas sit: which GPUs of which node each of them takes.

Model: a replica takes `tp` neighbouring GPUs of one NVLink domain (a node, or a rack of them). Pools are
seated in the order of the scenario, each by its own rule; see sim.config.place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from sim.config.scenario import Pool
from sim.network.fabric import Port
from sim.serving.plan import Seat
from sim.topology.cluster import Cluster


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
        return gcd(gpus, *(min(pool.tp, gpus) for pool in pools))
    rails = cluster.rails
    if cluster.fabric.routing.kind != "spray" or not _rails_are_alike(cluster):
        return 1
    width = gcd(rails, *(max(1, min(pool.tp, gpus) * rails // gpus) for pool in pools))
    shared = len(cluster.leaves[0].rails) if cluster.leaves else 1
    return width if width % shared == 0 or shared % width == 0 else gcd(width, shared)


def _rails_are_alike(cluster: Cluster) -> bool:
    alike: dict[tuple[int, ...], set[tuple[int, int]]] = {}
    for leaf in cluster.leaves:
        alike.setdefault(leaf.nodes, set()).add((leaf.up_cables, len(leaf.rails)))
    together = {node: nodes for nodes in alike for node in nodes}
    return all(len(kinds) == 1 for kinds in alike.values()) and all(
        together[node] == nodes for nodes in alike for node in nodes
    )


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
        for domain, first_gpu in free[: pool.replicas]:
            placed.append(Seat(_ports(cluster, domain, first_gpu, pool.tp, width)))
            taken[domain].update(range(first_gpu, first_gpu + pool.tp))
        seats.append(tuple(placed))
    return seats


def _free(cluster: Cluster, pool: Pool, taken: Sequence[set[int]]) -> list[tuple[int, int]]:
    """Free places of `tp` GPUs for a pool, as (domain, first GPU in it), in order."""
    free = []
    for domain, used in enumerate(taken):
        first, end = 0, cluster.domain_gpus(domain)
        while first + pool.tp <= end:
            blocked = [gpu for gpu in range(first, first + pool.tp) if gpu in used]
            if blocked:
                first = blocked[-1] + 1
            else:
                free.append((domain, first))
                first += pool.tp
    return free


def _chosen(cluster: Cluster, pool: Pool, free: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Free places in the order in which the pool takes them; those it may not take are left out."""
    place = pool.place
    if place.kind == "spread" and len(free) > pool.replicas:
        return [free[k * len(free) // pool.replicas] for k in range(pool.replicas)]
    if place.kind == "per-domain":
        most = place.prefill if pool.role == "prefill" else place.decode
        return [spot for spots in _by_domain(free).values() for spot in spots[:most]]
    if place.kind == "nodes":
        wanted = [node for first, last in place.nodes for node in range(first, last + 1)]
        by_node: dict[int, list[tuple[int, int]]] = {}
        for spot in free:
            nodes = _nodes(cluster, *spot, pool.tp)
            if set(nodes) <= set(wanted):
                by_node.setdefault(nodes[0], []).append(spot)
        return [spot for node in dict.fromkeys(wanted) for spot in by_node.get(node, ())]
    return free


def _by_domain(free: list[tuple[int, int]]) -> dict[int, list[tuple[int, int]]]:
    spots: dict[int, list[tuple[int, int]]] = {}
    for spot in free:
        spots.setdefault(spot[0], []).append(spot)
    return spots


def _nodes(cluster: Cluster, domain: int, first_gpu: int, tp: int) -> list[int]:
    """The nodes of so many GPUs of a domain from the first one given."""
    gpus = [node for node in cluster.domains[domain] for _ in range(cluster.types[node].gpus)]
    return list(dict.fromkeys(gpus[first_gpu : first_gpu + tp]))


def _ports(cluster: Cluster, domain: int, first_gpu: int, tp: int, width: int) -> tuple[Port, ...]:
    """The port of each rank of a replica that takes `tp` GPUs of a domain from the first one given."""
    gpus = [(node, gpu) for node in cluster.domains[domain] for gpu in range(cluster.types[node].gpus)]
    return tuple(
        Port(node, gpu * (cluster.rails or cluster.types[node].gpus) // cluster.types[node].gpus // width)
        for node, gpu in gpus[first_gpu : first_gpu + tp]
    )
