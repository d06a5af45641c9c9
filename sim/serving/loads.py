"""How many tokens each replica still has to work through, and who has the fewest.

The least loaded is found without looking at all replicas, in a heap of (load, last chosen, replica). An entry
may say less than the truth: it is put right when it comes up. It never says more, because a load that
falls gets a new entry at once; what is left of the old one is dropped when it comes up.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace

from sim.clock import Clock
from sim.serving.stale import Stale

Change = tuple[int, int, bool]
"""A replica, so many tokens more, and whether that is because it was chosen."""


class Loads:
    """Outstanding tokens by replica number."""

    def __init__(self, replicas: int) -> None:
        self.tokens = [0] * replicas
        self.chosen_at = [0] * replicas
        self._choices = 0
        self._heap = [(0, 0, replica) for replica in range(replicas)]
        self._newest = list(self._heap)

    def begin(self) -> None:
        """The simulation begins."""

    def catch_up(self) -> None:
        """Learn what is to be seen now: nothing is late."""

    def least(self) -> int:
        """The replica with the fewest outstanding tokens; ties go to the one chosen longest ago."""
        heap, newest, tokens, chosen_at = self._heap, self._newest, self.tokens, self.chosen_at
        while True:
            entry = heap[0]
            load, chosen, replica = entry
            if newest[replica] is not entry:
                heappop(heap)
            elif tokens[replica] == load and chosen_at[replica] == chosen:
                return replica
            else:
                entry = newest[replica] = (tokens[replica], chosen_at[replica], replica)
                heapreplace(heap, entry)

    def choose(self, replica: int, tokens: int) -> None:
        """Give a replica work, as the most recent choice."""
        self._choices += 1
        self.chosen_at[replica] = self._choices
        self.tokens[replica] += tokens

    def done(self, replica: int, tokens: int) -> None:
        """Take finished work off a replica."""
        load = self.tokens[replica] = self.tokens[replica] - tokens
        entry = self._newest[replica] = (load, self.chosen_at[replica], replica)
        heap = self._heap
        heappush(heap, entry)
        if len(heap) > 64 + 8 * len(self.tokens):
            self._heap = list(self._newest)
            heapify(self._heap)


class LateLoads(Loads):
    """Loads that are seen as they were `stale_ps` ago, choices included; until `begin` at once."""

    def __init__(self, replicas: int, stale_ps: int, clock: Clock) -> None:
        super().__init__(replicas)
        self._clock = clock
        self._wanted_ps = stale_ps
        self._stale: Stale[Change] = Stale(0, self._learn)

    def begin(self) -> None:
        """See everything late from now on."""
        self._stale.stale_ps = self._wanted_ps

    def catch_up(self) -> None:
        """Learn what is old enough."""
        self._stale.catch_up(self._clock.now)

    def choose(self, replica: int, tokens: int) -> None:
        """Give a replica work."""
        self._stale.tell(self._clock.now, (replica, tokens, True))

    def done(self, replica: int, tokens: int) -> None:
        """Take finished work off a replica."""
        self._stale.tell(self._clock.now, (replica, tokens, False))

    def _learn(self, change: Change) -> None:
        replica, tokens, is_choice = change
        if is_choice:
            super().choose(replica, tokens)
        else:
            super().done(replica, tokens)


def loads_of(replicas: int, stale_ps: int, clock: Clock) -> Loads:
    """Loads as a router sees them."""
    return LateLoads(replicas, stale_ps, clock) if stale_ps else Loads(replicas)
