"""Where replicas sit: which GPUs of which node each of them takes.

Model: a replica takes `tp` neighbouring GPUs of one node. Pools are seated in the order of the scenario;
`packed` fills one node after the other, `spread` takes nodes evenly over those that have room.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from sim.config.scenario import Pool
from sim.serving.plan import Seat
from sim.topology.cluster import Cluster


@dataclass(frozen=True, slots=True)
class NoRoom:
    """A pool that does not fit: its index, the replicas that do, and those wanted."""

    pool: int
    seated: int
    wanted: int


def lanes(cluster: Cluster, pools: Sequence[Pool]) -> int:
    """Rails that every replica uses as a whole or not at all, so that they can be one link."""
    if not cluster.rails:
        return 0
    gpus = min(node.gpus for node in cluster.types)
    return gcd(cluster.rails, *(max(1, pool.tp * cluster.rails // gpus) for pool in pools))


def seat(cluster: Cluster, pools: Sequence[Pool]) -> list[tuple[Seat, ...]] | NoRoom:
    """The seats of every pool, or the first pool that does not fit."""
    width = lanes(cluster, pools)
    taken = [0] * len(cluster.types)
    seats: list[tuple[Seat, ...]] = []
    for i, pool in enumerate(pools):
        nodes = _nodes(cluster, pool, taken)
        if len(nodes) < pool.replicas:
            return NoRoom(i, len(nodes), pool.replicas)
        placed = []
        for node in nodes:
            placed.append(Seat(node, _groups(cluster, node, taken[node], pool.tp, width)))
            taken[node] += pool.tp
        seats.append(tuple(placed))
    return seats


def _nodes(cluster: Cluster, pool: Pool, taken: Sequence[int]) -> list[int]:
    """The node of each replica of a pool; fewer than wanted where there is no room for more."""
    room = [(node.gpus - used) // pool.tp for node, used in zip(cluster.types, taken, strict=True)]
    free = [i for i, places in enumerate(room) for _ in range(places)]
    if pool.place == "packed" or len(free) <= pool.replicas:
        return free[: pool.replicas]
    return [free[k * len(free) // pool.replicas] for k in range(pool.replicas)]


def _groups(cluster: Cluster, node: int, first_gpu: int, tp: int, width: int) -> tuple[int, ...]:
    """The rail groups of the NICs beside the GPUs of a replica."""
    if not width:
        return (0,)
    gpus, rails = cluster.types[node].gpus, cluster.rails
    first, last = first_gpu * rails // gpus, (first_gpu + tp - 1) * rails // gpus
    return tuple(range(first // width, last // width + 1))
