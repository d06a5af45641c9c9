"""An engine profile: what serving software adds to the hardware, as numbers and choices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sim.base.units import show
from sim.catalog.entry import Entry
from sim.catalog.fields import Fields


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Engine(Entry):
    """An engine profile.

    `first_token` says which side emits a request's first token; `handoff_order` whether KV moves after the
    prefill (source-first) or decode blocks are reserved before it (destination-first).
    `prefill_host_time_ps` is added once per prefill batch; `prefill_launch_time_ps` is what the host needs
    to launch one layer, and a prefill takes at least that for all layers. `decode_host_time_ps` is added to
    each step, `decode_item_time_ps` for each sequence, KV head and layer; `decode_stream_bytes_per_s` limits
    the rate at which one sequence's KV head is read (None: no limit), and `fp8_cache_part` is what is left of
    the memory rate where decode attention reads a cache in FP8. `graph_batches` are the batch sizes
    that have a CUDA graph: a step costs the next one; empty means that it costs its own.
    `first_length_time_ps` is what the first prompt of a length costs extra at a replica, and
    `prefill_cached_token_ps` each token that need not be computed. `is_layerwise` says
    whether KV is fetched and sent layer by layer while a prompt is computed; `fetch_bytes_per_s` and
    `save_bytes_per_s` (after `fetch_start_ps`) are what one fetch from host memory, and one write to it, get
    (None: what links give).

    `batching`, `token_budget`, `chunk_tokens` (of one prompt in a step) and `max_sequences` are how steps are
    filled where the scenario does not say it. `kv_reservation` takes memory for the whole sequence when its
    prompt is let in, or lets it grow page by page; then `watermark_fraction` of it stays free when prompts
    are let in, and `preemption` says what becomes of a sequence that finds no page;
    `swap_space_bytes` of host memory for each GPU take it in where it is swapped (0: no default).
    `sequence_host_time_ps` is added to each step for each sequence; `overlaps_host` prepares a step on the
    host while the GPU still works on the last. What the host does between steps, which no measured time of a
    step holds: `prefill_gap_ps` before one with prompts, `step_gap_ps` before a decode step, `change_gap_ps`
    before the first of a changed batch, `send_time_ps` after a prefill whose KV is sent, and what it takes to
    gather that at `send_bytes_per_s`; a handoff takes `handoff_start_ps` besides its bytes, and copies them
    at both ends at `staging_bytes_per_s` (None: neither gathers nor copies). A request
    takes `request_time_ps` through the front end, in and out, beside what GPUs do. `restart_time_ps` is from
    the start of a process to its first step.
    """

    first_token: str
    handoff_order: str
    attention_kernel: str
    page_tokens: int
    memory_fraction: float
    activation_reserve_bytes: int
    prefill_host_time_ps: int
    prefill_launch_time_ps: int
    decode_host_time_ps: int
    decode_item_time_ps: int
    decode_stream_bytes_per_s: float | None
    fp8_cache_part: float
    graph_batches: tuple[int, ...]
    first_length_time_ps: int
    prefill_cached_token_ps: int
    is_layerwise: bool
    fetch_start_ps: int
    fetch_bytes_per_s: float | None
    save_bytes_per_s: float | None
    batching: str
    token_budget: int
    chunk_tokens: int
    max_sequences: int
    kv_reservation: str
    preemption: str
    watermark_fraction: float
    sequence_host_time_ps: int
    overlaps_host: bool
    prefill_gap_ps: int
    step_gap_ps: int
    change_gap_ps: int
    send_time_ps: int
    handoff_start_ps: int
    send_bytes_per_s: float | None
    staging_bytes_per_s: float | None
    layer_time_ps: int
    request_time_ps: int
    restart_time_ps: int
    swap_space_bytes: int = 0

    @classmethod
    def read(cls, fields: Fields) -> Engine:
        """Read an entry of engines.yaml."""
        has_limit = fields.has("decode_stream_rate")
        return cls(
            **fields.identity(),
            first_token=fields.text("first_token", ("prefill", "decode")),
            handoff_order=fields.text("handoff_order", ("source-first", "destination-first")),
            attention_kernel=fields.text("attention_kernel"),
            page_tokens=fields.count("page_tokens"),
            memory_fraction=fields.quantity("memory_fraction", "fraction"),
            activation_reserve_bytes=fields.whole_quantity("activation_reserve", "size"),
            prefill_host_time_ps=fields.whole_quantity("prefill_host_time", "time"),
            prefill_launch_time_ps=fields.whole_quantity("prefill_launch_time", "time"),
            decode_host_time_ps=fields.whole_quantity("decode_host_time", "time"),
            decode_item_time_ps=fields.whole_quantity("decode_item_time", "time"),
            decode_stream_bytes_per_s=fields.quantity("decode_stream_rate", "rate") if has_limit else None,
            fp8_cache_part=fields.quantity("fp8_cache", "fraction") if fields.has("fp8_cache") else 1.0,
            graph_batches=fields.counts("graph_batches"),
            first_length_time_ps=_time(fields, "first_length_time"),
            prefill_cached_token_ps=_time(fields, "prefill_cached_time"),
            fetch_start_ps=_time(fields, "fetch_start"),
            is_layerwise=fields.flag("layerwise"),
            fetch_bytes_per_s=_rate(fields, "fetch_rate"),
            save_bytes_per_s=_rate(fields, "save_rate"),
            **_scheduling(fields),
            **_gaps(fields),
        )

    @property
    def summary(self) -> str:
        """Title, batching rule, handoff order, page and host time of a step."""
        step = show(self.decode_host_time_ps + self.step_gap_ps, "time")
        return (
            f"{self.title}, {self.batching}, {self.handoff_order}, pages of {self.page_tokens} tokens, "
            f"{step} host time a step"
        )

    def padded_batch(self, batch: int) -> int:
        """Return the batch size that a decode step of `batch` sequences costs."""
        return next((size for size in self.graph_batches if size >= batch), batch)


def _scheduling(fields: Fields) -> dict[str, Any]:
    """How steps and memory are filled; a prompt may take all of a step where no chunk is given."""
    budget = fields.count("token_budget")
    spare = fields.quantity("watermark", "fraction") if fields.has("watermark") else 0.0
    return {
        "batching": fields.text("batching"),
        "token_budget": budget,
        "chunk_tokens": fields.count("chunk_tokens") if fields.has("chunk_tokens") else budget,
        "max_sequences": fields.count("max_sequences"),
        "kv_reservation": fields.text("kv_reservation", ("whole", "grow")),
        "preemption": fields.text("preemption", ("recompute", "swap", "never")),
        "swap_space_bytes": fields.whole_quantity("swap_space", "size") if fields.has("swap_space") else 0,
        "watermark_fraction": spare,
    }


def _gaps(fields: Fields) -> dict[str, Any]:
    """What the host adds, as far as an engine does."""
    return {
        "sequence_host_time_ps": _time(fields, "sequence_host_time"),
        "overlaps_host": fields.flag("overlaps_host"),
        "prefill_gap_ps": _time(fields, "prefill_gap"),
        "step_gap_ps": _time(fields, "step_gap"),
        "change_gap_ps": _time(fields, "change_gap"),
        "send_time_ps": _time(fields, "send_time"),
        "handoff_start_ps": _time(fields, "handoff_start"),
        "send_bytes_per_s": _rate(fields, "send_rate"),
        "staging_bytes_per_s": _rate(fields, "staging_rate"),
        "layer_time_ps": _time(fields, "layer_time"),
        "request_time_ps": _time(fields, "request_time"),
        "restart_time_ps": fields.whole_quantity("restart_time", "time"),
    }


def _rate(fields: Fields, key: str) -> float | None:
    """A rate that only some engines have."""
    return fields.quantity(key, "rate") if fields.has(key) else None


def _time(fields: Fields, key: str) -> int:
    """A time that only some engines have; 0 for others."""
    return fields.whole_quantity(key, "time") if fields.has(key) else 0
