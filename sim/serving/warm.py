"""Fill the prefill caches with what requests before the window would have left there.

Model: each earlier request is routed as usual and its blocks are put into the cache of the replica chosen.
For the router to spread load, a replica works its prompts off one after the other, as long as each would
take alone; nothing else about those requests is simulated. In the pool they are written to the node of
their replica, or beside the longest prefix that another has, where that would have been worth fetching and
copies are not always made.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from sim.serving.colocated import ColocatedPool
from sim.serving.prefill import PrefillPool
from sim.workload.request import Request


def warm(pool: PrefillPool | ColocatedPool, history: Iterable[Request]) -> int:
    """Feed the blocks of `history` into caches and index; the number of requests fed."""
    prefill_ps, loads = pool.plan.timing.prefill_ps, pool.loads
    free_at = [0] * len(pool.replicas)
    working: list[tuple[int, int, int]] = []
    fed = 0
    if pool.flows is not None:
        pool.flows.saving.is_warming = True
    for request in history:
        now = request.arrived_ps
        while working and working[0][0] <= now:
            _, number, tokens = heappop(working)
            loads.done(number, tokens)
        number = pool.route(request, request.blocks, now)
        if pool.estimates is not None:
            pool.estimates.ask(request, pool.view)
            pool.estimates.assume(number, now)
        hits = pool.view.match.depth(number)
        cached = min(hits * pool.block_tokens, request.input_tokens - 1)
        new = request.input_tokens - cached
        loads.choose(number, new)
        free_at[number] = max(free_at[number], now) + prefill_ps(((new, cached),))
        heappush(working, (free_at[number], number, new))
        if pool.flows is None or pool.keeps_blocks:
            pool.replicas[number].memory.keep(pool.kept_blocks(request))
        if pool.flows is not None:
            pool.flows.warm(request, pool.replicas[number].seat, hits)
        fed += 1
    for _, number, tokens in working:
        loads.done(number, tokens)
    if pool.flows is not None:
        pool.flows.saving.is_warming = False
    if pool.estimates is not None:
        pool.estimates.clear()
    return fed
