"""The contract between the two towers: what a simulation writes and every explanation reads.

Instants and durations are integer picoseconds (`_ps`) as recorded, seconds (`_s`) as published.
"Not yet" is -1 in integer columns and NaN in `_s` columns.
"""

from __future__ import annotations

PS_PER_S = 1_000_000_000_000
NOT_YET = -1

STATUSES: tuple[str, ...] = ("finished", "unfinished", "rejected", "timed_out", "cancelled", "failed")

PHASES: dict[str, str] = {
    "route": "front end, choosing a prefill replica, and waiting where none can be yet, as for decode memory",
    "queue": "waiting in a prefill replica for a batch",
    "kv_fetch": "waiting for cached KV blocks to arrive from elsewhere",
    "prefill": "computing the prompt",
    "reserve": "prompt computed, waiting for KV memory in a decode replica",
    "transfer": "KV moving from prefill to decode",
    "decode_queue": "KV arrived, waiting for a step of the decode batch",
    "decode": "generating tokens",
    "preempted": "put aside for want of KV memory",
    "retry": "work lost to a fault and done again",
}
"""A request's life, partitioned along its critical path: the phases sum to end-to-end exactly."""

REQUEST_COLUMNS: tuple[str, ...] = (
    "request_id",
    "measured",
    "arrived_ps",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "first_token_ps",
    "second_token_ps",
    "finished_ps",
    "prefill_replica",
    "decode_replica",
    "transfer_link",
    "transfer_waited_ps",
    "transfer_hidden_ps",
    "hbm_tokens",
    "dram_tokens",
    "nvme_tokens",
    "remote_tokens",
    "fetch_link",
    "fetch_waited_ps",
    "fetch_hidden_ps",
    "fetch_spared_ps",
    "status",
    *(f"phase_{name}_ps" for name in PHASES),
)
"""What the Recorder keeps of a request, all integers; `status` indexes STATUSES.

`transfer_link` is the link that cost its handoff most time (the narrowest where none was shared), and
`transfer_waited_ps` what sharing links cost it in all; the same for the fetch of cached KV. `*_hidden_ps` is
how long either went on while the prompt was computed anyway, which no phase shows. Of the cached tokens
`hbm_tokens` were in the replica's HBM, `dram_tokens` and `nvme_tokens` came from the pool, `remote_tokens` of
them from other nodes; `fetch_spared_ps` is what computing them would have taken.
"""

SEGMENT_COLUMNS: tuple[str, ...] = (
    "replica",
    "started_ps",
    "steps",
    "first_step_ps",
    "step_growth_ps",
    "batch",
    "measured",
    "joined",
)
"""A run of decode steps with the same members: step k (from 0) lasts first_step + k * step_growth.

Every sequence of the batch gets one token at the end of each step. `measured` of them belong to
measured requests, and `joined` of these got their first token from this replica in step 0, so
their gap to the token before is not the length of that step but `second_token - first_token`.
"""

SAMPLE_COLUMNS: tuple[str, ...] = ("at_ps", "kind", "name", "metric", "value")
"""Long form: one reading of one thing at one instant, e.g. (…, "pool", "prefill", "queued", 12).

Most are taken at equal intervals. A replica that runs out of KV memory says so at that instant: (…,
"out_of_memory", "serve-3", "missing_pages", 2), the pages that its next step lacked before anybody gave way.
"""
