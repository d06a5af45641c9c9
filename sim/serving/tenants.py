"""Who is in a colocated replica: sequences that wait, are computed or decode, and the memory that each holds.

Model: pages are taken for the next steps of whoever decodes. Where a step finds none, the last sequence of
the order is put aside, again and again until it does.
Units: tokens, pages, blocks; steps count from the start of the simulation.
Ignores: time, which passes in sim.serving.colocatedreplica.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from heapq import heapify, heappush
from typing import TYPE_CHECKING

from sim.clock import Clock
from sim.kvpool.cache import Cache
from sim.serving.pages import PagedMemory
from sim.serving.plan import Seat
from sim.serving.sequence import Sequence

if TYPE_CHECKING:
    from sim.serving.colocated import ColocatedPool


class Tenants:
    """The sequences of one replica; `number` is its place in the pool.

    `waiting` is in the pool's order, `_under_way` in that of being let in. `_running` is a heap of (step at
    whose end it is done, request id, sequence); `_joining` of them have not taken part in a step yet, all
    others had their last token at `_token_ps`. Since the last boundary somebody `_gave_way`. Memory ran out
    at `shortages` boundaries; sequences were put aside `preemptions` times, `swapped` of them to host memory.
    """

    def __init__(self, pool: ColocatedPool, number: int, seat: Seat) -> None:
        self.pool = pool
        self.clock: Clock = pool.clock
        self.number = number
        self.seat = seat
        self.memory = Cache(pool.capacity_blocks, pool.tree, number)
        self.pages = PagedMemory(self.memory, pool.page_tokens, pool.block_tokens)
        self.waiting: list[Sequence] = []
        self.preemptions = self.shortages = self.swapped = 0
        self._under_way: list[Sequence] = []
        self._running: list[tuple[int, int, Sequence]] = []
        self._joining: list[Sequence] = []
        self._measured = self._context = self._step = self._token_ps = 0
        self._gave_way = False
        self._is_changed = False

    @property
    def running(self) -> int:
        """Sequences that decode."""
        return len(self._running)

    @property
    def under_way(self) -> int:
        """Prompts of which a part is computed."""
        return len(self._under_way)

    def _join(self, sequence: Sequence) -> None:
        """Let a sequence decode from the next step on."""
        job = sequence.job
        sequence.joined_at = self._step
        done_at = self._step + self._steps_left(sequence)
        heappush(self._running, (done_at, job.request.id, sequence))
        self._context += sequence.total
        self._measured += job.measured
        self._joining.append(sequence)
        self._is_changed = True

    def _steps_left(self, sequence: Sequence) -> int:
        """Steps until a sequence that joins now is done."""
        return sequence.job.request.output_tokens - sequence.tokens

    def _spare_blocks(self) -> int:
        """Blocks that stay free when somebody is let in."""
        return self.pool.spare_blocks if self._running or self._under_way else 0

    def _missing(self, steps: int) -> int:
        """Pages that so many steps would need beyond those that are there."""
        own_pages, step = self.pool.own_pages, self._step + steps - 1
        return sum(
            max(own_pages(sequence.blocks, sequence.reach(step)) - sequence.pages, 0)
            for _, _, sequence in self._running
        )

    def _affordable(self, most: int) -> int:
        """How many steps there are pages for, up to a number; memory of others does not change meanwhile."""
        has_room, page_tokens = self.pages.has_room, self.pool.page_tokens
        grown = most * (self.pool.lookahead + 1) + self.pool.lookahead
        if self.pool.batching.reserves_whole or has_room(len(self._running) * (grown // page_tokens + 1)):
            return most
        return bisect_left(range(1, most + 1), True, key=lambda steps: not has_room(self._missing(steps)))

    def _take_pages(self, steps: int) -> None:
        """Take the pages that will be filled after so many more steps."""
        if self.pool.batching.reserves_whole:
            return
        self.pages.take(self._missing(steps))
        for _, _, sequence in self._running:
            pages = self.pool.own_pages(sequence.blocks, sequence.reach(self._step + steps - 1))
            sequence.pages = max(sequence.pages, pages)

    def _make_room(self) -> bool:
        """Put sequences aside, the last of the order first, until one step is possible; whether any was."""
        if self._running and not self._affordable(1):
            self._note_shortage()
        while self._running and not self._affordable(1):
            self._put_aside(max([*self._under_way, *(entry[2] for entry in self._running)]))
            self._gave_way = True
        return self._gave_way

    def _note_shortage(self) -> None:
        """Memory has run out: an event, for the tables."""
        self.shortages += 1
        name, missing = f"{self.pool.plan.name}-{self.number}", self._missing(1)
        self.pool.log.sample(self.clock.now, "out_of_memory", name, "missing_pages", missing)

    def _put_aside(self, sequence: Sequence) -> None:
        """Take everything from a sequence and let it wait in its place."""
        self._take_out(sequence)
        self.preemptions += 1
        sequence.job.put_aside(self.clock.now)
        insort(self.waiting, sequence)

    def _take_out(self, sequence: Sequence) -> None:
        """Take a sequence out of those that are computed or decode, and everything that it holds."""
        if sequence in self._under_way:
            self._under_way.remove(sequence)
        else:
            self._running = [entry for entry in self._running if entry[2] is not sequence]
            heapify(self._running)
            self._context -= sequence.context(self._step)
            self._measured -= sequence.job.measured
            self._is_changed = True
            if sequence in self._joining:
                self._joining.remove(sequence)
            elif self._step > sequence.joined_at:
                sequence.tokens += sequence.gained(self._step)
                sequence.last_token_ps = self._token_ps
        self._give_back(sequence)

    def _give_back(self, sequence: Sequence) -> None:
        assert sequence.lease is not None
        self.pages.release(sequence.lease, sequence.pages)
        sequence.lease, sequence.pages = None, 0
