"""How many tokens each replica still has to work through, and who has the fewest.

The least loaded is found without looking at all replicas: a heap holds (load, last chosen, replica), a new
entry for each change; entries that are out of date are dropped when they come up.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush


class Loads:
    """Outstanding tokens by replica number."""

    def __init__(self, replicas: int) -> None:
        self.tokens = [0] * replicas
        self.chosen_at = [0] * replicas
        self._choices = 0
        self._heap = [(0, 0, replica) for replica in range(replicas)]

    def least(self) -> int:
        """The replica with the fewest outstanding tokens; ties go to the one chosen longest ago."""
        heap, tokens, chosen_at = self._heap, self.tokens, self.chosen_at
        while True:
            load, chosen, replica = heap[0]
            if tokens[replica] == load and chosen_at[replica] == chosen:
                return replica
            heappop(heap)

    def choose(self, replica: int, tokens: int) -> None:
        """Give a replica work, as the most recent choice."""
        self._choices += 1
        self.chosen_at[replica] = self._choices
        self.add(replica, tokens)

    def add(self, replica: int, tokens: int) -> None:
        """Change the load of a replica; done work is negative."""
        load = self.tokens[replica] = self.tokens[replica] + tokens
        heap = self._heap
        heappush(heap, (load, self.chosen_at[replica], replica))
        if len(heap) > 64 + 8 * len(self.tokens):
            self._heap = [(t, c, i) for i, (t, c) in enumerate(zip(self.tokens, self.chosen_at, strict=True))]
            heapify(self._heap)
