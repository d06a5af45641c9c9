"""Spraying: packets of a flow go over all parallel links, which act as one.

Model: the uplinks of the leaves of a rail group are one link in each direction, and so are the uplinks of all
spines of a pod; capacity is that of the cables times the efficiency of the routing. EFA's SRD, Spectrum-X
and InfiniBand's adaptive routing are of this kind. A link that all NICs below it cannot fill is left out of
the sharing, by proof.
Ignores: reordering, and the queues that spraying leaves.
"""

from __future__ import annotations

from sim.network.links import Links, Place
from sim.tables.uses import Ends
from sim.topology.cluster import Cluster


class Spray:
    """Ways between leaves over aggregate links."""

    def __init__(self, cluster: Cluster, links: Links) -> None:
        assert cluster.fabric is not None
        self.cluster = cluster
        self.links = links
        self.efficiency = cluster.fabric.routing.efficiency

    def way(self, source: tuple[int, ...], target: tuple[int, ...], flow: tuple[int, int, int]) -> list[int]:
        """The links between the leaves of a sender and those of a receiver; the same for every flow."""
        up, down = self._leaves(source, "up"), self._leaves(target, "down")
        if self.cluster.hops(source[0], target[0]).switches < 5:
            return [up, down]
        return [up, self._pods(source, "up"), self._pods(target, "down"), down]

    def _leaves(self, leaves: tuple[int, ...], way: str) -> int:
        """All cables between some leaves and the spines, one way."""
        place: Place = (f"leaf_{way}", *leaves)
        number = self.links.get(place)
        if number is None:
            members = [self.cluster.leaves[leaf] for leaf in leaves]
            cables = sum(leaf.up_cables for leaf in members)
            capacity = cables * self.cluster.rate_bytes_per_s * self.efficiency
            name = members[0].name if len(members) == 1 else f"{members[0].name} to {members[-1].name}"
            reach = sum(self._below(leaf) for leaf in leaves)
            spines = sorted({spine for leaf in members for spine, _ in leaf.up})
            ends = Ends(leaves=leaves, spines=tuple(spines))
            number = self.links.make(place, f"{name} {way}", capacity, ends, reach)
        return number

    def _pods(self, leaves: tuple[int, ...], way: str) -> int:
        """All cables between the spines above some leaves and the cores, one way.

        Leaves of merged rails are of one pod, or each of its own where a rail has spines for itself.
        """
        pods = tuple(dict.fromkeys(self.cluster.leaves[leaf].pod for leaf in leaves))
        place: Place = (f"spine_{way}", *pods)
        number = self.links.get(place)
        if number is None:
            cables = sum(self.cluster.pod_up_cables[pod] for pod in pods)
            capacity = cables * self.cluster.rate_bytes_per_s * self.efficiency
            reach = sum(self._below(leaf.number) for leaf in self.cluster.leaves if leaf.pod in pods)
            name = f"pod {pods[0]}" if len(pods) == 1 else f"pods {pods[0]} to {pods[-1]}"
            spines = [spine for pod in pods for spine in self.cluster.spines_in.get(pod, ())]
            cores = sorted({core for spine in spines for core, _ in self.cluster.spines[spine].up})
            ends = Ends(spines=tuple(spines), cores=tuple(cores))
            number = self.links.make(place, f"{name} spines {way}", capacity, ends, reach)
        return number

    def _below(self, leaf: int) -> float:
        """What all NICs at a leaf carry together."""
        members = self.cluster.leaves[leaf]
        rates = sum(self.cluster.rail_bytes_per_s(node) for node in members.nodes)
        return rates * len(members.rails)
