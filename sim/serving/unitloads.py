"""A load for each replica, and the least loaded replica of each fabric unit.

`load` is what each replica has to do. Units are those of the topology; where it has none, all replicas are in
one. The least loaded is found as in sim.serving.loads, without looking at all.
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
        self._members = [members[unit] for unit in sorted(members)]
        self._loads = [Loads(len(of_unit)) for of_unit in self._members]
        self._places = [(0, 0)] * len(units)
        for unit, of_unit in enumerate(self._members):
            for place, replica in enumerate(of_unit):
                self._places[replica] = (unit, place)
        self._least = [of_unit[0] for of_unit in self._members]
        self._changed: dict[int, None] = {}  # units of which somebody else may be the least loaded now
        self.load = [0] * len(units)
        self.chosen_at = [0] * len(units)
        self._choices = 0

    def set(self, replica: int, load: int) -> None:
        """Note what a replica has to do."""
        unit, place = self._places[replica]
        more = load - self.load[replica]
        self.load[replica] = load
        self._changed[unit] = None
        if more < 0:
            self._loads[unit].done(place, -more)
        else:
            self._loads[unit].tokens[place] = load

    def choose(self, replica: int, load: int) -> None:
        """Note it as the most recent choice."""
        self.set(replica, load)
        self._choices += 1
        self.chosen_at[replica] = self._choices
        unit, place = self._places[replica]
        self._loads[unit].choose(place, 0)

    def least(self) -> list[int]:
        """The least loaded replica of each unit; ties go to the one chosen longest ago."""
        for unit in self._changed:
            self._least[unit] = self._members[unit][self._loads[unit].least()]
        self._changed.clear()
        return self._least
