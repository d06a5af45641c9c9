"""A load for each replica, and the least loaded replica of each fabric unit.

Units are those of the topology; where it has none, all replicas are in one. The least loaded is found as in
sim.serving.loads, without looking at all.
"""

from __future__ import annotations

from collections.abc import Sequence

from sim.serving.loads import Loads


class UnitLoads:
    """Loads of any unit of measure by replica; `units` says where each replica is."""

    def __init__(self, units: Sequence[int]) -> None:
        members: dict[int, list[int]] = {}
        for replica, unit in enumerate(units):
            members.setdefault(unit, []).append(replica)
        self._units = [(members[unit], Loads(len(members[unit]))) for unit in sorted(members)]
        places = {
            replica: (loads, place) for of_unit, loads in self._units for place, replica in enumerate(of_unit)
        }
        self._places = [places[replica] for replica in range(len(units))]
        self.chosen_at = [0] * len(units)
        self._choices = 0

    def load(self, replica: int) -> int:
        """What a replica has to do."""
        loads, place = self._places[replica]
        return loads.tokens[place]

    def set(self, replica: int, load: int) -> None:
        """Note what a replica has to do."""
        loads, place = self._places[replica]
        more = load - loads.tokens[place]
        if more < 0:
            loads.done(place, -more)
        else:
            loads.tokens[place] = load

    def choose(self, replica: int, load: int) -> None:
        """Note it as the most recent choice."""
        self.set(replica, load)
        self._choices += 1
        self.chosen_at[replica] = self._choices
        loads, place = self._places[replica]
        loads.choose(place, 0)

    def least(self) -> list[int]:
        """The least loaded replica of each unit; ties go to the one chosen longest ago."""
        return [replicas[loads.least()] for replicas, loads in self._units]
