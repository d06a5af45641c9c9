"""A request on its way through the cluster, and the row it leaves behind."""

from __future__ import annotations

from collections.abc import Sequence

from sim.kvpool.cache import Lease
from sim.tables.schema import NOT_YET, PHASES, STATUSES
from sim.workload.request import Request

FINISHED, UNFINISHED, REJECTED = (STATUSES.index(name) for name in ("finished", "unfinished", "rejected"))
_AFTER_DECODE = (0,) * (len(PHASES) - list(PHASES).index("decode") - 1)


class Job:
    """Where a request is and when it got there (picoseconds, NOT_YET before).

    `blocks` are the ids of its prompt where blocks are reused, `cached_tokens` of it need not be computed;
    `kv_blocks` and `kv_pages` are what it takes at either side, `lease` what it holds of the prefill side.
    `computed_ps` is when its prompt's KV was complete; `second_token_ps` is set where the first token came
    from the prefill side. `transfer_link` held its handoff back most, sharing cost it
    `transfer_waited_ps`.
    """

    __slots__ = (
        "blocks",
        "cached_tokens",
        "computed_ps",
        "decode_replica",
        "decoding_ps",
        "estimate_tokens",
        "finished_ps",
        "first_token_ps",
        "kv_arrived_ps",
        "kv_blocks",
        "kv_pages",
        "lease",
        "measured",
        "prefill_ps",
        "prefill_replica",
        "request",
        "reserved_ps",
        "routed_ps",
        "second_token_ps",
        "status",
        "transfer_link",
        "transfer_waited_ps",
    )

    def __init__(self, request: Request, blocks: Sequence[int], kv_blocks: int, measured: bool) -> None:
        self.request = request
        self.blocks = blocks
        self.kv_blocks = kv_blocks
        self.measured = measured
        self.status = UNFINISHED
        self.cached_tokens = 0
        self.lease: Lease | None = None
        self.estimate_tokens = 0
        self.kv_pages = 0
        self.prefill_replica = NOT_YET
        self.decode_replica = NOT_YET
        self.routed_ps = NOT_YET
        self.prefill_ps = NOT_YET
        self.computed_ps = NOT_YET
        self.first_token_ps = NOT_YET
        self.second_token_ps = NOT_YET
        self.reserved_ps = NOT_YET
        self.kv_arrived_ps = NOT_YET
        self.transfer_link = NOT_YET
        self.transfer_waited_ps = NOT_YET
        self.decoding_ps = NOT_YET
        self.finished_ps = NOT_YET

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
        reserved = self.reserved_ps if self.reserved_ps >= 0 else end
        received = self.kv_arrived_ps if self.kv_arrived_ps >= 0 else end
        decoding = self.decoding_ps if self.decoding_ps >= 0 else end
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
            self.transfer_link,
            self.transfer_waited_ps,
            self.status,
            routed - arrived,
            started - routed,
            0,
            computed - started,
            reserved - computed,
            received - reserved,
            decoding - received,
            end - decoding,
            *_AFTER_DECODE,
        )
