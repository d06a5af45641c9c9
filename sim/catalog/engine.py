"""An engine profile: what serving software adds to the hardware, as numbers and choices."""

from __future__ import annotations

from dataclasses import dataclass

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
    the rate at which one sequence's KV head is read (None: no limit). `graph_batches` are the batch sizes
    that have a CUDA graph: a step costs the next one; empty means that it costs its own.
    `first_length_time_ps` is what the first prompt of a length costs extra at a replica, and
    `prefill_cached_token_ps` each token that need not be computed. `is_layerwise` says
    whether KV is fetched and sent layer by layer while a prompt is computed; `fetch_bytes_per_s` and
    `save_bytes_per_s` (after `fetch_start_ps`) are what one fetch from host memory, and one write to it, get
    (None: what links give).
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
    graph_batches: tuple[int, ...]
    first_length_time_ps: int
    prefill_cached_token_ps: int
    is_layerwise: bool
    fetch_start_ps: int
    fetch_bytes_per_s: float | None
    save_bytes_per_s: float | None

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
            graph_batches=fields.counts("graph_batches"),
            first_length_time_ps=_time(fields, "first_length_time"),
            prefill_cached_token_ps=_time(fields, "prefill_cached_time"),
            fetch_start_ps=_time(fields, "fetch_start"),
            is_layerwise=fields.flag("layerwise"),
            fetch_bytes_per_s=fields.quantity("fetch_rate", "rate") if fields.has("fetch_rate") else None,
            save_bytes_per_s=fields.quantity("save_rate", "rate") if fields.has("save_rate") else None,
        )

    @property
    def summary(self) -> str:
        """Title, handoff order, page and host time of a step."""
        step = show(self.decode_host_time_ps, "time")
        return (
            f"{self.title}, {self.handoff_order}, pages of {self.page_tokens} tokens, {step} host time a step"
        )

    def padded_batch(self, batch: int) -> int:
        """Return the batch size that a decode step of `batch` sequences costs."""
        return next((size for size in self.graph_batches if size >= batch), batch)


def _time(fields: Fields, key: str) -> int:
    """A time that only some engines have; 0 for others."""
    return fields.whole_quantity(key, "time") if fields.has(key) else 0
