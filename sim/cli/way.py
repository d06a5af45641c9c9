"""The way between two places as replicas that sit there would use it: rails merged as for their handoffs."""

from __future__ import annotations

from sim.config.pool import Pool
from sim.network.fabric import Fabric
from sim.network.route import Route, route
from sim.serving.seating import lanes
from sim.topology.cluster import Cluster
from sim.topology.place import Place


def way(cluster: Cluster, source: Place, target: Place) -> Route:
    """The way from a node or GPU to another: all rails of nodes together, those of a GPU apart."""
    is_of_nodes = source.gpu is None and target.gpu is None
    size = cluster.types[source.node].gpus if is_of_nodes else 1
    replicas = Pool(name="ends", role="prefill", replicas=1, tp=size)
    return route(Fabric(cluster, lanes(cluster, [replicas])), source, target)
