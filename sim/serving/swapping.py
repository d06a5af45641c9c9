"""A colocated replica whose sequences wait in host memory when they give way, and come back from there.

Model: a sequence that decodes and is put aside is copied to the memory of its own hosts, each rank's part
over the PCIe or C2C link of its GPU, in whole pages; it waits in its place of the order, and when it is its
turn and its pages fit it is copied back, and decodes on: nothing is computed anew. What its full blocks left
in the cache need not come back. Copies are flows, and meet whatever else crosses those links. They belong to
the boundary of a step: the next one begins when they have arrived, and everybody waits for it. One that finds
no room in host memory, or whose prompt is not computed yet, is computed anew.
Source: swapping of vLLM before its version 1 (vllm/core/scheduler.py and vllm/worker/cache_engine.py of
v0.6.6), which queues its copies before the step on the same stream.
Ignores: copies beside a step.
Units: pages, bytes, picoseconds.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from simpy import Event

from sim.clock import FLOW_START
from sim.network.fabric import Fabric
from sim.network.flows import FlowNetwork
from sim.network.parts import Part
from sim.network.waiting import Delivery
from sim.serving.colocatedreplica import ColocatedReplica
from sim.serving.job import Job
from sim.serving.plan import Seat, SwapPlan
from sim.serving.sequence import Sequence
from sim.tables.schema import NOT_YET

if TYPE_CHECKING:
    from sim.serving.colocated import ColocatedPool

Wires = tuple[Fabric, FlowNetwork]
"""What copies cross: where the links are, and who carries flows over them."""


class SwappingReplica(ColocatedReplica):
    """A replica with host memory for those that give way.

    `host_pages` of it are free. At a boundary some go `_out` or some come `_in`, never both: whoever gave way
    keeps others out.
    """

    def __init__(self, pool: ColocatedPool, number: int, seat: Seat, rank: int, wires: Wires) -> None:
        self.plan: SwapPlan = pool.batching.swap or SwapPlan(0, 0)
        self.fabric, self.network = wires
        self.host_pages = self.plan.pages
        self._out: list[Sequence] = []
        self._in: list[Sequence] = []
        self._pages_in = 0
        super().__init__(pool, number, seat, rank)

    def leave(self, job: Job) -> None:
        """Let go of a request whose user has left, and of what it has in host memory."""
        for sequence in self.waiting:
            if sequence.job is job:
                self._forget(sequence)
        super().leave(job)

    def _put_aside(self, sequence: Sequence) -> None:
        """Take everything from a sequence; keep in host memory what there is room for."""
        is_computed = sequence not in self._under_way
        super()._put_aside(sequence)
        pages = self.pool.kv_pages(sequence.total - 1)  # its last token has not been through the model
        if is_computed and pages <= self.host_pages:
            self.host_pages -= pages
            sequence.kept_pages = pages
            self.swapped += 1
            self._out.append(sequence)
            self._has_copies = True

    def _forget(self, sequence: Sequence) -> None:
        """Free what a sequence has in host memory."""
        self.host_pages += sequence.kept_pages
        sequence.kept_pages = 0

    def _fetch(self, sequence: Sequence) -> bool:
        """Let one that waits in host memory in, if those that decode have room for a step beside it."""
        if not self._affordable(1):
            return False
        self._take_pages(1)
        pool, blocks = self.pool, sequence.blocks
        match = pool.tree.match(blocks) if blocks else None
        found = match.depth(self.number) * pool.block_tokens // pool.page_tokens if match is not None else 0
        pages = pool.first_pages(sequence)
        lease = self.pages.admit(blocks, pages, self._spare_blocks(), match)
        if lease is None:
            return False
        self._pages_in += max(sequence.kept_pages - found, 0)
        self._forget(sequence)
        self.memory.publish(lease)
        sequence.lease, sequence.pages = lease, pages
        del self.waiting[0]
        self._join(sequence)
        self._in.append(sequence)
        self._has_copies = True
        return True

    def _copy(self) -> Generator[Event, Delivery, None]:
        """Copy out those that gave way, or in those whose turn it is, and wait for it."""
        if self.nics is not None:
            self.nics.rest()
        moved = self._out or self._in
        parts = self._parts()
        if parts:
            clock = self.clock
            latency_ps = max(way.latency_ps for _, way in parts)
            yield clock.at(clock.now + latency_ps, FLOW_START + moved[0].job.request.id)
            yield self.network.send(parts)
        for sequence in self._in:
            if sequence.job.aside_ps != NOT_YET:
                sequence.job.bring_back(self.clock.now)
        self._out, self._in, self._pages_in = [], [], 0

    def _parts(self) -> list[Part]:
        """What is copied over the links of each port of the replica."""
        out = sum(sequence.kept_pages for sequence in self._out)
        pages, seat = out or self._pages_in, self.seat
        if not pages:
            return []
        fabric, size = self.fabric, pages * self.plan.rank_page_bytes
        return [
            (
                size * seat.ranks.count(i),
                fabric.gpu_to_dram(port) if out else fabric.dram_to_gpu(port.node, port),
            )
            for i, port in enumerate(seat.places)
        ]
