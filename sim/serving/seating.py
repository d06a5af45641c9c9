"""Where replicas sit: which GPUs of which node each of them takes.

Model: a replica takes `tp` neighbouring GPUs of one NVLink domain (a node, or a rack of them). Pools are
seated in the order of the scenario; `packed` fills one domain after the other, `spread` takes domains
evenly over those that have room.
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
    fabric's form sees to), and leaves of the same nodes with as many cables up.
    """
    rails = cluster.rails
    if not rails or cluster.fabric is None:
        return 0
    if cluster.fabric.routing.kind != "spray" or not _rails_are_alike(cluster):
        return 1
    gpus = min(node.gpus for node in cluster.types)
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
    taken = [0] * len(cluster.domains)
    seats: list[tuple[Seat, ...]] = []
    for i, pool in enumerate(pools):
        domains = _domains(cluster, pool, taken)
        if len(domains) < pool.replicas:
            return NoRoom(i, len(domains), pool.replicas)
        placed = []
        for domain in domains:
            placed.append(Seat(_ports(cluster, domain, taken[domain], pool.tp, width)))
            taken[domain] += pool.tp
        seats.append(tuple(placed))
    return seats


def _domains(cluster: Cluster, pool: Pool, taken: Sequence[int]) -> list[int]:
    """The NVLink domain of each replica of a pool; fewer than wanted where there is no room for more."""
    room = [(cluster.domain_gpus(i) - used) // pool.tp for i, used in enumerate(taken)]
    free = [i for i, places in enumerate(room) for _ in range(places)]
    if pool.place == "packed" or len(free) <= pool.replicas:
        return free[: pool.replicas]
    return [free[k * len(free) // pool.replicas] for k in range(pool.replicas)]


def _ports(cluster: Cluster, domain: int, first_gpu: int, tp: int, width: int) -> tuple[Port, ...]:
    """The port of each rank of a replica that takes `tp` GPUs of a domain from the first one given."""
    gpus = [(node, gpu) for node in cluster.domains[domain] for gpu in range(cluster.types[node].gpus)]
    return tuple(
        Port(node, gpu * cluster.rails // cluster.types[node].gpus // width if width else 0)
        for node, gpu in gpus[first_gpu : first_gpu + tp]
    )
