"""Where the replicas of a pool are, as routers see it: NVLink domains (nodes, or racks of them) and units.

A replica is where its first node is. Steps between two spots: none in one NVLink domain, one in one fabric
unit, two elsewhere.
Ignores: pods and the fabric above them, and the other nodes of a replica that spans several.
"""

from __future__ import annotations

from collections.abc import Sequence

Spot = tuple[int, int]
"""An NVLink domain and a fabric unit, by number."""

FARTHEST = 2
NOBODY: tuple[int, ...] = ()


class Places:
    """The spot of each replica, and who is in each domain and unit."""

    def __init__(self, spots: Sequence[Spot]) -> None:
        self.spots = tuple(spots)
        self._in_domain: dict[int, list[int]] = {}
        self._in_unit: dict[int, list[int]] = {}
        for replica, (domain, unit) in enumerate(self.spots):
            self._in_domain.setdefault(domain, []).append(replica)
            self._in_unit.setdefault(unit, []).append(replica)

    def steps(self, replica: int, spot: Spot) -> int:
        """How far a replica is from a spot."""
        domain, unit = self.spots[replica]
        if domain == spot[0]:
            return 0
        return 1 if unit == spot[1] else FARTHEST

    def around(self, spot: Spot) -> tuple[Sequence[int], Sequence[int]]:
        """The replicas in the domain of a spot, and those in its unit."""
        return self._in_domain.get(spot[0], NOBODY), self._in_unit.get(spot[1], NOBODY)


EVERYWHERE = Places(())
