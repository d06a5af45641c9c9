"""One cable for each flow at every switch: by a hash (ECMP), by destination, or the least loaded.

Model: a flow goes up from its leaf to a spine, and on to a core where no spine of the leaf reaches the
leaf of the receiver, and down again; wherever several cables lead on, one is chosen:
- `ecmp`: by a hash of sender, receiver and queue pair with the seed, never by the order of arrival, so that
  results do not depend on the order of events. Two flows may share a cable while others are empty.
- `static`: by the receiver alone, as InfiniBand without adaptive routing does, whatever the queue pair.
- `ar_flow`: on the way up the cable with the fewest flows at that moment, seen from the switch; on the way
  down by hash. It stands for adaptive routing by flow, not by packet.
Ignores: flowlets, rehashing, and that real hash functions are worse than this one.
"""

from __future__ import annotations

from collections.abc import Sequence

from sim.network.links import Links
from sim.tables.uses import Ends
from sim.topology.cluster import Cluster

Cable = tuple[int, int]
"""A switch at the other end, and which of the parallel cables to it."""
MASK = (1 << 64) - 1


class Hashed:
    """Ways between leaves over single cables."""

    def __init__(self, cluster: Cluster, links: Links, seed: int) -> None:
        assert cluster.fabric is not None
        self.cluster = cluster
        self.links = links
        self.kind = cluster.fabric.routing.kind
        self.seed = seed
        self.capacity = cluster.rate_bytes_per_s * cluster.fabric.routing.efficiency
        self._places: dict[int, dict[int, int]] = {}
        self._up: dict[tuple[int, int], list[Cable]] = {}
        self._over: dict[tuple[int, int], list[Cable]] = {}
        self._down: dict[tuple[int, int], list[Cable]] = {}
        self._spines_at = {leaf.number: dict(leaf.up) for leaf in cluster.leaves}
        self._cores_at = {spine.number: dict(spine.up) for spine in cluster.spines}

    def way(self, source: tuple[int, ...], target: tuple[int, ...], flow: tuple[int, int, int]) -> list[int]:
        """The links between two leaves for a flow, which is (sender, receiver, queue pair)."""
        (one,), (other,) = source, target
        sender, receiver, queue_pair = flow
        if self.kind == "static":
            return self._by_destination(one, other, receiver)
        up = self._spines(one, other)
        luck = mixed(mixed(mixed(self.seed) ^ sender << 32 ^ receiver) ^ queue_pair)
        spine, cable = self._upward("leaf_up", one, up, luck)
        ways = [self._link("leaf_up", one, spine, cable)]
        luck //= len(up)
        if spine not in self._spines_at[other]:
            over = self._cores(spine, other)
            core, cable = self._upward("spine_up", spine, over, luck)
            ways.append(self._link("spine_up", spine, core, cable))
            luck //= len(over)
            below = self._spines_below(core, other)
            spine, cable = below[luck % len(below)]
            ways.append(self._link("spine_down", spine, core, cable))
            luck //= len(below)
        ways.append(self._link("leaf_down", other, spine, luck % self._spines_at[other][spine]))
        return ways

    def _by_destination(self, one: int, other: int, receiver: int) -> list[int]:
        """The receivers of a leaf are dealt out over its cables, and leaves over the cores."""
        place = self._place(other, receiver)
        down = [(spine, cable) for spine, cables in self._spines_at[other].items() for cable in range(cables)]
        last, last_cable = down[place % len(down)]
        shared = [(spine, cable) for spine, cable in self._spines(one, other) if spine == last]
        up = shared or self._spines(one, other)
        spine, cable = up[place % len(up)]
        ways = [self._link("leaf_up", one, spine, cable)]
        if spine != last:
            over = [choice for choice in self._cores(spine, other) if choice[0] in self._cores_at[last]]
            core, cable = over[other % len(over)]
            back = other % self._cores_at[last][core]
            ways += [self._link("spine_up", spine, core, cable), self._link("spine_down", last, core, back)]
        ways.append(self._link("leaf_down", other, last, last_cable))
        return ways

    def _place(self, leaf: int, receiver: int) -> int:
        """The position of a NIC among those at its leaf."""
        places = self._places.get(leaf)
        if places is None:
            at, rails = self.cluster.leaves[leaf], self.cluster.rails
            numbers = [node * rails + rail for node in at.nodes for rail in at.rails]
            places = self._places[leaf] = {number: place for place, number in enumerate(numbers)}
        return places[receiver]

    def _upward(self, kind: str, switch: int, cables: Sequence[Cable], luck: int) -> Cable:
        """The cable up from a switch: by hash or destination, or the one with the fewest flows."""
        if self.kind != "ar_flow":
            return cables[luck % len(cables)]
        turn = luck % len(cables)
        order = [*cables[turn:], *cables[:turn]]
        return min(order, key=lambda cable: self._flows_on(kind, switch, cable))

    def _flows_on(self, kind: str, switch: int, cable: Cable) -> int:
        number = self.links.get((kind, switch, *cable))
        return 0 if number is None else len(self.links.solver[number].flows)

    def _link(self, kind: str, lower: int, upper: int, cable: int) -> int:
        """The link of one cable in one direction."""
        place = (kind, lower, upper, cable)
        number = self.links.get(place)
        if number is None:
            ends = [self._name(kind, lower), self._name(kind, upper, above=True)]
            if kind.endswith("down"):
                ends.reverse()
            name = f"{ends[0]} to {ends[1]}" + (f" cable {cable}" if cable else "")
            at_leaf = kind.startswith("leaf")
            joined = (
                Ends(leaves=(lower,), spines=(upper,)) if at_leaf else Ends(spines=(lower,), cores=(upper,))
            )
            number = self.links.make(place, name, self.capacity, joined)
        return number

    def _name(self, kind: str, switch: int, above: bool = False) -> str:
        """The name of the switch at the lower or the upper end of a link."""
        cluster = self.cluster
        if kind.startswith("leaf"):
            return cluster.spines[switch].name if above else cluster.leaves[switch].name
        return cluster.cores[switch].name if above else cluster.spines[switch].name

    def _spines(self, one: int, other: int) -> list[Cable]:
        """Cables up from a leaf: to spines that reach the other leaf, if there are any, else to all."""
        key = (one, other)
        if key not in self._up:
            up = self._spines_at[one]
            shared = [spine for spine in up if spine in self._spines_at[other]]
            self._up[key] = [(spine, cable) for spine in shared or up for cable in range(up[spine])]
        return self._up[key]

    def _cores(self, spine: int, other: int) -> list[Cable]:
        """Cables up from a spine to cores from which a spine of the other leaf is reached."""
        key = (spine, other)
        if key not in self._over:
            up = self._cores_at[spine]
            beyond = {core for upper in self._spines_at[other] for core in self._cores_at[upper]}
            self._over[key] = [(core, cable) for core in up if core in beyond for cable in range(up[core])]
        return self._over[key]

    def _spines_below(self, core: int, other: int) -> list[Cable]:
        """Cables down from a core to spines of a leaf."""
        key = (core, other)
        if key not in self._down:
            self._down[key] = [
                (spine, cable)
                for spine in self._spines_at[other]
                for cable in range(self._cores_at[spine].get(core, 0))
            ]
        return self._down[key]


def mixed(value: int) -> int:
    """Spread the bits of a 64-bit number (the finaliser of splitmix64, Steele, Lea and Flood 2014)."""
    value = (value + 0x9E3779B97F4A7C15) & MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)
