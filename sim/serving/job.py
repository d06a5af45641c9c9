"""A request on its way through the cluster, and the row it leaves behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sim.kvpool.cache import Lease
from sim.kvpool.pool import Place
from sim.kvpool.tree import Match
from sim.network.flow import Pace
from sim.tables.schema import NOT_YET, PHASES, STATUSES
from sim.workload.request import Request

if TYPE_CHECKING:
    from sim.serving.kvfetch import Wanted

FINISHED, UNFINISHED, REJECTED, TIMED_OUT, CANCELLED = (
    STATUSES.index(name) for name in ("finished", "unfinished", "rejected", "timed_out", "cancelled")
)
_AFTER_PREEMPTED = (0,) * (len(PHASES) - list(PHASES).index("preempted") - 1)


class Job:
    """Where a request is and when it got there (picoseconds, NOT_YET before).

    `blocks` are the ids of its prompt where blocks are reused, `cached_tokens` of it need not be computed;
    `kv_blocks` and `kv_pages` are what it takes at either side, `lease` what it holds of the prefill side.
    `computed_ps` is when its prompt's KV was complete; `second_token_ps` is set where the first token came
    from the prefill side. `transfer_link` held its handoff back most, sharing cost it `transfer_waited_ps`;
    since `streamed_ps` KV has left while the prompt was being computed. `source` is where cached blocks were
    fetched from, `keeps_copy` whether its node keeps them too, `known_blocks` of the
    prompt had been seen before. `exposed_ps` is what its batch waited for cached KV, `fetch_hidden_ps` what
    came meanwhile. `users` of its blocks are not done yet: the handoff, and whoever saves them; `capped`
    links hold back what leaves before the prompt is computed, once it `is_leaving`. `is_withdrawn` says that
    its user left while it waited for decode memory, so that its KV will not move.
    While a replica looks at it, `match` is what prefill replicas hold of its prompt, `wanted` what to fetch;
    it `is_recomputed` where fetching what was found would take longer.
    `is_colocated`: one replica computes it and decodes. Since `aside_ps` it is put aside for want of memory;
    it was for `aside_before_ps` before its prompt was computed, and for `aside_after_ps` after.
    What a job starts with is of the class: few of its values ever change for most.
    """

    status: int = UNFINISHED
    cached_tokens: int = 0
    lease: Lease | None = None
    estimate_tokens: int = 0
    estimate_ps: int = 0
    kv_pages: int = 0
    prefill_replica: int = NOT_YET
    decode_replica: int = NOT_YET
    routed_ps: int = NOT_YET
    prefill_ps: int = NOT_YET
    computed_ps: int = NOT_YET
    first_token_ps: int = NOT_YET
    second_token_ps: int = NOT_YET
    reserved_ps: int = NOT_YET
    kv_arrived_ps: int = NOT_YET
    transfer_link: int = NOT_YET
    transfer_waited_ps: int = NOT_YET
    streamed_ps: int = NOT_YET
    users: int = 1
    is_leaving: bool = False
    is_withdrawn: bool = False
    wanted: Wanted | None = None
    match: Match | None = None
    is_recomputed: bool = False
    capped: Sequence[Pace] = ()
    source: Place | None = None
    keeps_copy: bool = False
    known_blocks: int = 0
    hbm_tokens: int = 0
    dram_tokens: int = 0
    nvme_tokens: int = 0
    remote_tokens: int = 0
    exposed_ps: int = 0
    fetch_link: int = NOT_YET
    fetch_waited_ps: int = NOT_YET
    fetch_hidden_ps: int = 0
    fetch_spared_ps: int = 0
    decoding_ps: int = NOT_YET
    finished_ps: int = NOT_YET
    is_colocated: bool = False
    aside_ps: int = NOT_YET
    aside_before_ps: int = 0
    aside_after_ps: int = 0

    def __init__(self, request: Request, blocks: Sequence[int], kv_blocks: int, measured: bool) -> None:
        self.request = request
        self.blocks = blocks
        self.kv_blocks = kv_blocks
        self.measured = measured

    def put_aside(self, now_ps: int) -> None:
        """Put it aside, unless it was and has not come back yet."""
        if self.aside_ps == NOT_YET:
            self.aside_ps = now_ps
        if self.computed_ps >= 0 and self.decoding_ps == NOT_YET:
            self.decoding_ps = now_ps

    def bring_back(self, now_ps: int) -> None:
        """Its prompt is computed again, or all that it had."""
        aside_ps, self.aside_ps = now_ps - self.aside_ps, NOT_YET
        if self.computed_ps >= 0:
            self.aside_after_ps += aside_ps
        else:
            self.aside_before_ps += aside_ps

    def row(self, now_ps: int) -> tuple[int, ...]:
        """Give the row of tables.REQUEST_COLUMNS; phases of an unfinished request end now."""
        request = self.request
        arrived = request.arrived_ps
        end = self.finished_ps
        if end == NOT_YET:
            end = now_ps
        routed = self.routed_ps if self.routed_ps >= 0 else end
        started = self.prefill_ps if self.prefill_ps >= 0 else end
        computed = self.computed_ps if self.computed_ps >= 0 else end
        reserved = max(self.reserved_ps, computed) if self.reserved_ps >= 0 else end
        received = self.kv_arrived_ps if self.kv_arrived_ps >= 0 else end
        decoding = self.decoding_ps if self.decoding_ps >= 0 else end
        if self.aside_ps >= 0:
            self.bring_back(end)
        return (
            request.id,
            int(self.measured),
            arrived,
            request.input_tokens,
            request.output_tokens,
            self.cached_tokens,
            self.first_token_ps,
            self.second_token_ps,
            self.finished_ps,
            self.prefill_replica,
            self.decode_replica,
            *self._aside(computed),
            self.status,
            routed - arrived,
            started - routed,
            self.exposed_ps,
            computed - started - self.exposed_ps - self.aside_before_ps,
            reserved - computed,
            received - reserved,
            decoding - received,
            end - decoding - self.aside_after_ps,
            self.aside_before_ps + self.aside_after_ps,
            *_AFTER_PREEMPTED,
        )

    def _aside(self, computed_ps: int) -> tuple[int, ...]:
        """Give what the phases do not show: links that held it back, what was hidden, where KV was found."""
        return (
            self.transfer_link,
            self.transfer_waited_ps,
            max(computed_ps - self.streamed_ps, 0) if self.streamed_ps >= 0 else 0,
            self.hbm_tokens,
            self.dram_tokens,
            self.nvme_tokens,
            self.remote_tokens,
            self.fetch_link,
            self.fetch_waited_ps,
            self.fetch_hidden_ps,
            self.fetch_spared_ps,
        )
