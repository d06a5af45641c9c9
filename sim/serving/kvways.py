"""The ways of cached KV between replicas and the memories that nodes lend, with the bytes on each.

Model: each rank of a replica keeps its own share of a block, and moves it over the port it is at. Remote NVMe
is read through the memory of its host. Where an engine stages what it moves, its rate caps each flow.
Units: bytes.
"""

from __future__ import annotations

from sim.kvpool.pool import DRAM, Place
from sim.network.fabric import Fabric, Port
from sim.network.path import Cap, Path, tightest
from sim.serving.plan import KvPlan, Seat
from sim.tables.schema import PS_PER_S

KvPart = tuple[int, Path]
"""Bytes, and their way."""


class KvWays:
    """Flows, as (bytes, path), for blocks between places of the pool and replicas of `ranks` ranks."""

    def __init__(self, plan: KvPlan, ranks: int, fabric: Fabric) -> None:
        self.plan = plan
        self.fabric = fabric
        self.block_bytes = plan.rank_block_bytes * ranks
        self._fetch_cap = self._cap("fetch", plan.fetch_bytes_per_s)
        self._save_cap = self._cap("save", plan.save_bytes_per_s)
        self._shares: dict[Seat, list[tuple[Port, int]]] = {}
        self._home: dict[Seat, list[KvPart]] = {}

    def into_replica(self, place: Place, seat: Seat, blocks: int) -> list[KvPart]:
        """The flows that bring blocks from a place to a replica."""
        fabric, straight = self.fabric, self.plan.gpudirect_storage
        parts = []
        for port, rank_bytes in self._ports(seat):
            if place.tier == DRAM:
                path = fabric.dram_to_gpu(place.node, port)
            elif place.node == port.node:
                path = fabric.nvme_to_gpu(place.node, port, straight)
            else:
                path = fabric.nvme_to_dram(place.node).then(fabric.dram_to_gpu(place.node, port))
            parts.append((blocks * rank_bytes, self._staged(path, self._fetch_cap)))
        return parts

    def out_of_replica(self, seat: Seat, node: int, blocks: int) -> list[KvPart]:
        """The flows that bring blocks from a replica to the memory of a host."""
        is_home = seat.nodes == (node,)
        ways = self._home.get(seat) if is_home else None
        if ways is None:
            path = self.fabric.gpu_to_dram
            ways = [
                (rank_bytes, self._staged(path(port, node), self._save_cap))
                for port, rank_bytes in self._ports(seat)
            ]
            if is_home:  # over no switch, so always the same
                self._home[seat] = ways
        return [(blocks * rank_bytes, way) for rank_bytes, way in ways]

    def down(self, node: int, blocks: int) -> list[KvPart]:
        """The flow that brings blocks from the memory of a host to its NVMe."""
        return [(blocks * self.block_bytes, self.fabric.dram_to_nvme(node))]

    def across(self, source: int, target: int, blocks: int) -> list[KvPart]:
        """The flows that copy blocks between the memories of two hosts, over all their lanes."""
        lanes = self.fabric.groups
        each, rest = divmod(blocks * self.block_bytes, lanes)
        return [
            (each + (lane < rest), self.fabric.dram_to_dram(source, target, lane)) for lane in range(lanes)
        ]

    def _ports(self, seat: Seat) -> list[tuple[Port, int]]:
        """The ports of a replica, and the bytes of a block that the ranks at each have."""
        shares = self._shares.get(seat)
        if shares is None:
            rank_bytes = self.plan.rank_block_bytes
            shares = self._shares[seat] = [
                (port, seat.ranks.count(i) * rank_bytes) for i, port in enumerate(seat.places)
            ]
        return shares

    def _cap(self, what: str, rate: float | None) -> Cap | None:
        if rate is None:
            return None
        number = self.fabric.table.cap("staging", f"staging of a {what}", rate).id
        return Cap(number, rate / PS_PER_S)

    @staticmethod
    def _staged(path: Path, cap: Cap | None) -> Path:
        return path if cap is None else path._replace(cap=tightest(path.cap, cap))
