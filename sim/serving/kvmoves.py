"""The pool at work: its memories, what moves to and from them, and what happens when a node is lost.

Model: a transfer to or from what a lost node lends is broken off at once; whoever waits for it is told.
Units: bytes, picoseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence

from simpy import Event

from sim.clock import FLOW_START, Clock, Errand, Moment
from sim.kvpool.pool import TIERS, KvPool, Place
from sim.network.fabric import Fabric
from sim.network.flow import Transfer
from sim.network.flows import FlowNetwork
from sim.network.parts import Part
from sim.network.path import Path
from sim.serving.kvways import KvWays
from sim.serving.plan import KvPlan, LostPart, PoolPlan


class KvMoves:
    """What fetching and saving share: the pool, the ways to it, and its books.

    `read_bytes` and `written_bytes` count by tier, `read_over` and `written_over` by kind of link; `counts`
    writes that found no room (`skipped`), copies made for others (`replicated`, `rebalanced`), moves broken
    off (`broken`), fetches not worth while (`recomputed`).
    """

    def __init__(self, clock: Clock, plan: KvPlan, pool: PoolPlan, fabric: Fabric, net: FlowNetwork) -> None:
        self.clock = clock
        self.plan = plan
        self.timing = pool.timing
        self.fabric = fabric
        self.network = net
        self.pool = KvPool(plan.lent, plan.eviction, plan.is_shared, plan.ttl_ps)
        self.ways = KvWays(plan, pool.gpus_per_replica, fabric)
        self.read_bytes: Counter[str] = Counter()
        self.written_bytes: Counter[str] = Counter()
        self.read_over: Counter[str] = Counter()
        self.written_over: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self._moving: dict[Transfer, tuple[int, ...]] = {}
        for lost in plan.lost:
            Errand(self._lose(lost))

    def send(self, parts: Sequence[Part], *nodes: int) -> Moment:
        """Send to or from what nodes lend; broken off when one of them is lost."""
        if not self.plan.lost:
            return self.network.send(parts)
        transfer = self.network.send_whole(parts)
        self._moving[transfer] = nodes
        transfer.callbacks.append(self._moved)
        return transfer

    def has_read(self, place: Place, parts: Sequence[Part]) -> None:
        """Book a fetch from a place that has come."""
        self.read_bytes[TIERS[place.tier]] += self._cross(parts, self.read_over)

    def has_written(self, place: Place, parts: Sequence[Part]) -> None:
        """Book a write to a place that is there."""
        self.written_bytes[TIERS[place.tier]] += self._cross(parts, self.written_over)

    def _cross(self, parts: Sequence[Part], over: Counter[str]) -> int:
        """Count the bytes of parts at each link that they cross; queue pairs of a part cross equal kinds."""
        described, total = self.fabric.described, 0
        for size, way in parts:
            total += size
            for number in (way if isinstance(way, Path) else way.paths[0]).counted:
                over[described[number].kind] += size
        return total

    def _moved(self, transfer: Event) -> None:
        assert isinstance(transfer, Transfer)
        del self._moving[transfer]

    def _lose(self, lost: LostPart) -> Generator[Event, None, None]:
        """Lose a node's part of the pool: its blocks, and all that is on its way from or to it."""
        yield self.clock.at(lost.at_ps, FLOW_START)
        self.pool.lose(lost.node)
        over = self.clock.at(
            self.clock.now, FLOW_START
        )  # due now, so that nobody decides before all are told
        for transfer in [one for one, nodes in self._moving.items() if lost.node in nodes]:
            self.network.cancel(transfer)
        yield over
