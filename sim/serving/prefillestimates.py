"""Estimated times to first token: what a request would wait for at each prefill replica.

Model: TTFT = queue + service. The queue is what is left of the batch that runs, and the estimates of all
prompts behind it, each as if it ran alone. Service is the computing of what is not cached; or, where that is
sooner and the pool fetches at all, fetch and the computing of the rest. A fetch comes from the replica's own
node, else from the least busy holder of the longest prefix, at the rate that each link on the way would give
one flow more now. A replica is known by when it will be free, which only changes when it is given work or
begins a batch.
Units: picoseconds.
Ignores: that prompts of a batch share its fixed costs, that prefixes may come and go while a request waits,
and, where decode gives the first token, what comes after prefill. Only queues are seen late, not blocks and
links.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from sim.kvpool.pool import Place
from sim.serving.kvfetch import Found
from sim.serving.plan import KvPlan
from sim.serving.routers import HOLDERS_LOOKED_AT, NOTHING, View
from sim.serving.stale import Stale
from sim.serving.unitloads import UnitLoads
from sim.workload.request import Request

if TYPE_CHECKING:
    from sim.serving.prefill import PrefillPool

Freed = tuple[int, int, bool]
"""A replica, when it will be free, and whether that is because it was chosen."""


class PrefillEstimates:
    """When each replica of a pool would have computed the prompt that is asked for."""

    def __init__(self, pool: PrefillPool, kv: KvPlan) -> None:
        self.pool = pool
        self.kv = kv
        self.loads = UnitLoads(pool.plan.units or (0,) * len(pool.plan.seats))
        self._free_at_ps = [0] * len(pool.plan.seats)
        self._queued_ps = [0] * len(pool.plan.seats)
        self._stale: Stale[Freed] = Stale(kv.stale_ps, self._learn)
        self._nodes = [seat.nodes[0] for seat in pool.plan.seats]
        self._on_node: dict[int, list[int]] = {}
        for replica, node in enumerate(self._nodes):
            self._on_node.setdefault(node, []).append(replica)
        self._request: Request | None = None
        self._seen_ps = 0
        self._in_hbm = self._in_pool = NOTHING
        self._hbm_blocks = self._pool_blocks = 0
        self._source: Place | None = None
        self._services: dict[int, int] = {}
        self._computes: dict[int, int] = {}

    def ask(self, request: Request, view: View) -> None:
        """Ask about a request from now on."""
        if request is self._request:
            return
        self._request = request
        self._seen_ps = self._stale.catch_up(view.now_ps)
        self._in_hbm, self._in_pool, self._source = view.match, NOTHING, None
        self._hbm_blocks = self._pool_blocks = 0
        if self.pool.flows is not None and view.blocks:
            self._in_pool = self.pool.flows.moves.pool.match(view.blocks, view.now_ps)
        self._services.clear()
        self._computes.clear()

    def best(self) -> int:
        """The replica with the least estimate of those looked at: the least queued of each unit, and holders.

        Among equals it is the least queued, a holder, the one chosen longest ago.
        Whoever cannot be sooner than the best so far, however fast it gets the rest, is not estimated.
        """
        near = self._near()
        load, chosen_at, seen_ps = self.loads.load, self.loads.chosen_at, self._seen_ps
        order = []
        for replica in {**near, **dict.fromkeys(self.loads.least())}:
            queue_ps = load[replica] - seen_ps
            order.append((queue_ps if queue_ps > 0 else 0, replica not in near, chosen_at[replica], replica))
        order.sort()
        here_ps, away_ps = self._floors()
        best, best_ps = order[0][3], 1 << 62
        for queue_ps, is_away, _, replica in order:
            if queue_ps + here_ps >= best_ps:
                break
            if is_away and queue_ps + away_ps >= best_ps:
                continue
            ttft_ps = queue_ps + self.service_ps(replica)
            if ttft_ps < best_ps:
                best, best_ps = replica, ttft_ps
        return best

    def ttft_ps(self, replica: int) -> int:
        """Queue and service."""
        return self.queue_ps(replica) + self.service_ps(replica)

    def queue_ps(self, replica: int) -> int:
        """How long a replica would still have worked at the instant that is seen."""
        return max(self.loads.load[replica] - self._seen_ps, 0)

    def service_ps(self, replica: int) -> int:
        """How long a replica would be busy with the request."""
        service_ps = self._services.get(replica)
        if service_ps is None:
            service_ps = self._services[replica] = self._service_ps(replica)
        return service_ps

    def assign(self, replica: int, now_ps: int) -> int:
        """The request goes to a replica; how long it is estimated to keep it busy."""
        service_ps = self.service_ps(replica)
        self._queued_ps[replica] += service_ps
        self._add(replica, service_ps, now_ps)
        return service_ps

    def assume(self, replica: int, now_ps: int) -> None:
        """The same for a request whose computing is not simulated."""
        self._add(replica, self.service_ps(replica), now_ps)

    def began(self, replica: int, until_ps: int, taken_ps: int, now_ps: int) -> None:
        """A replica is busy up to an instant with prompts that were estimated to take `taken_ps`."""
        queued_ps = self._queued_ps[replica] = self._queued_ps[replica] - taken_ps
        free_at_ps = until_ps + queued_ps
        if free_at_ps != self._free_at_ps[replica]:
            self._free_at_ps[replica] = free_at_ps
            self._stale.tell(now_ps, (replica, free_at_ps, False))

    def dropped(self, replica: int, service_ps: int, now_ps: int) -> None:
        """A prompt that was estimated to take so long has left the queue of a replica."""
        self._queued_ps[replica] -= service_ps
        self._free_at_ps[replica] -= service_ps
        self._stale.tell(now_ps, (replica, self._free_at_ps[replica], False))

    def clear(self) -> None:
        """All replicas are free: what was assumed is over."""
        self._stale.forget()
        self._request = None
        for replica in range(len(self._free_at_ps)):
            self._free_at_ps[replica] = 0
            self.loads.set(replica, 0)

    def _add(self, replica: int, service_ps: int, now_ps: int) -> None:
        free_at_ps = self._free_at_ps[replica] = max(self._free_at_ps[replica], now_ps) + service_ps
        self._stale.tell(now_ps, (replica, free_at_ps, True))

    def _learn(self, news: Freed) -> None:
        replica, free_at_ps, is_choice = news
        if is_choice:
            self.loads.choose(replica, free_at_ps)
        else:
            self.loads.set(replica, free_at_ps)

    def _near(self) -> dict[int, None]:
        """Those that hold the longest prefix, in HBM or on their node, unless they are many."""
        near: dict[int, None] = {}
        if self._in_hbm.path:
            self._hbm_blocks, holders = self._in_hbm.longest()
            if len(holders) <= HOLDERS_LOOKED_AT:
                near.update(dict.fromkeys(sorted(holders)))
        if self._in_pool.path:
            assert self.pool.flows is not None
            places = self.pool.flows.moves.pool.places
            self._pool_blocks, holders = self._in_pool.longest()
            if len(holders) <= HOLDERS_LOOKED_AT:
                for holder in sorted(holders):
                    near.update(dict.fromkeys(self._on_node.get(places[holder].node, ())))
        return near

    def _floors(self) -> tuple[int, int]:
        """What no service is shorter than, and none that fetches the longest prefix from another node."""
        here_ps = away_ps = self._compute_ps(self._saved(max(self._hbm_blocks, self._pool_blocks)))
        blocks = self._pool_blocks - self._hbm_blocks
        if blocks > 0 and self.pool.flows is not None:
            flows = self.pool.flows
            holders = flows.moves.pool.longest(self._in_pool)[1]
            if not holders or len(holders) > HOLDERS_LOOKED_AT:
                return here_ps, away_ps
            rate = flows.moves.fabric.spare(self._source_among(holders).node)
            fetch_ps = round(blocks * flows.moves.ways.block_bytes / rate) if rate else 0
            anew_ps = self._compute_ps(self._saved(self._hbm_blocks))
            away_ps = min(flows.fetching.done_after_ps(fetch_ps, here_ps), anew_ps)
        return here_ps, away_ps

    def _source_among(self, holders: Collection[int]) -> Place:
        """Whom other nodes would fetch from."""
        if self._source is None:
            assert self.pool.flows is not None
            self._source = self.pool.flows.fetching.least_busy(holders)
        return self._source

    def _service_ps(self, replica: int) -> int:
        """Compute anew, or fetch and compute the rest."""
        hits = self._in_hbm.depth(replica) if self._in_hbm.path else 0
        in_hbm = self._saved(hits)
        anew_ps = self._compute_ps(in_hbm)
        if not self._in_pool.path or self.kv.fetch == "never":
            return anew_ps
        found = self._found(self._nodes[replica])
        having = self._saved(found.blocks) if found is not None else 0
        if found is None or having <= in_hbm:
            return anew_ps
        assert self.pool.flows is not None
        fetching = self.pool.flows.fetching
        rest_ps = self._compute_ps(having)
        fetched_ps = fetching.done_after_ps(
            fetching.quote_ps(found, self.pool.plan.seats[replica], hits), rest_ps
        )
        return fetched_ps if self.kv.fetch == "always" else min(fetched_ps, anew_ps)

    def _found(self, node: int) -> Found | None:
        """Where a replica on a node would fetch from, and how many blocks."""
        assert self.pool.flows is not None
        pool, match = self.pool.flows.moves.pool, self._in_pool
        depth, place = pool.here(match, node)
        longest, holders = pool.longest(match)
        if longest > depth:
            depth, place = longest, self._source_among(holders)
        return Found(place, depth) if place is not None else None

    def _saved(self, blocks: int) -> int:
        assert self._request is not None
        return min(blocks * self.pool.block_tokens, self._request.input_tokens - 1)

    def _compute_ps(self, cached: int) -> int:
        """How long the prompt takes alone of which so much is cached."""
        compute_ps = self._computes.get(cached)
        if compute_ps is None:
            assert self._request is not None
            new = self._request.input_tokens - cached
            compute_ps = self._computes[cached] = self.pool.plan.timing.prefill_ps(((new, cached),))
        return compute_ps
