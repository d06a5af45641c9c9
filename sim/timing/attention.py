"""The cost of attention: its projections as curves over tokens, and its core from what a batch looks at.

Model of the core, for a layer on each GPU:
- a prompt: the larger of FLOP per pair x pairs / FLOP rate, and the time to read keys and values once and to
  move queries and results. Pairs follow the reach (sim.catalog.reach): all, a sliding window, or a chunk.
- a decode step: reading the keys and values in reach of every sequence, or its FLOP if that takes longer
  (MLA).

MLA computes prompts in the expanded form, where the latents of cached tokens are expanded again, and decodes
in the absorbed form, where every head works on the latent itself (DeepSeek-V2, 2024). With an indexer it
works in the absorbed form always, on the chosen tokens only; the indexer itself scores all of them, in FP8
where the GPU has it. Linear attention reads and writes its state: for every chunk of a prompt, and in each
decode step.

Ignores: sinks, the choice of the best tokens after scoring, and that a kernel for few long sequences may
leave parts of a GPU idle (engines state a limit for that).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sim.catalog.attention import Attention, GroupedAttention, LatentAttention, LinearAttention
from sim.catalog.layer import Layer
from sim.catalog.matrix import Matrix, share
from sim.catalog.precision import kv_number_bytes
from sim.catalog.reach import FULL, Reach
from sim.timing.curve import Curve
from sim.timing.gemm import elementwise, whole_product
from sim.timing.moe import FormatOf
from sim.timing.placement import Shard
from sim.timing.rates import ACTIVATION_BYTES, PS, Rates
from sim.timing.timing import Chunk


@dataclass(frozen=True, slots=True)
class Core:
    """Attention itself in all layers of a group, in picoseconds.

    A prompt costs `kernel_ps` for all, `pair_ps` for each pair of `reach`, or `kv_ps` for each token in reach
    with `query_ps` for each new one; and always `scan_ps` for each pair of all, and `cached_ps` for each
    cached token. In a decode step `step_bytes` of each token in reach are read for `streams` KV heads, which
    takes at least `step_ps`; `scan_step_ps` are spent on each token, in reach or not, and `sequence_ps` on
    each sequence.
    """

    reach: Reach
    kernel_ps: float
    pair_ps: float = 0.0
    kv_ps: float = 0.0
    query_ps: float = 0.0
    scan_ps: float = 0.0
    cached_ps: float = 0.0
    step_bytes: int = 0
    streams: int = 0
    items: int = 0
    step_ps: float = 0.0
    scan_step_ps: float = 0.0
    sequence_ps: float = 0.0

    def prefill_ps(self, chunks: Sequence[Chunk]) -> float:
        """One batch of prompts."""
        tokens = context = doubled = scanned = cached_tokens = 0
        for new, cached in chunks:
            tokens += new
            cached_tokens += cached
            context += self.reach.touched(new, cached)
            doubled += self.reach.doubled_pairs(new, cached)
            scanned += FULL.doubled_pairs(new, cached)
        return (
            self.batch_ps(tokens, context, doubled)
            + self.scan_ps * scanned / 2
            + self.cached_ps * cached_tokens
        )

    def batch_ps(self, tokens: int, context: int, doubled_pairs: int) -> float:
        """The same from sums: new tokens, tokens in reach, and twice the pairs."""
        compute = self.pair_ps * doubled_pairs / 2
        memory = self.kv_ps * context + self.query_ps * tokens
        return self.kernel_ps + (compute if compute > memory else memory)


def cores(rates: Rates, shard: Shard, layer: Layer, count: int) -> Core | None:
    """The core of a group of equal layers; None where they have no attention."""
    attention = layer.attention
    if attention is None:
        return None
    if isinstance(attention, LinearAttention):
        return _linear(rates, shard, attention, count)
    if isinstance(attention, LatentAttention):
        return _latent(rates, shard, attention, count)
    return _grouped(rates, shard, layer, count)


def _grouped(rates: Rates, shard: Shard, layer: Layer, count: int) -> Core:
    attention = layer.attention
    assert isinstance(attention, GroupedAttention)
    heads = attention.heads // shard.tp
    vectors = heads * (attention.head_dim + attention.value_dim)
    kv = count * layer.kv_bytes(kv_number_bytes(shard.kv), shard.tp)
    streams = share(attention.kv_heads, shard.tp)
    return Core(
        reach=attention.reach,
        kernel_ps=rates.kernel_ps * count,
        pair_ps=2 * vectors * count / rates.attention_flops * PS,
        kv_ps=kv / rates.attention_bytes * PS,
        query_ps=vectors * ACTIVATION_BYTES * count / rates.attention_bytes * PS,
        step_bytes=kv,
        streams=streams,
        items=streams * count,
    )


def _latent(rates: Rates, shard: Shard, attention: LatentAttention, count: int) -> Core:
    heads = attention.heads // shard.tp
    latent = count * attention.kv_numbers(shard.tp) * kv_number_bytes(shard.kv)
    absorbed = count * attention.absorbed_flops_per_pair // attention.heads * heads
    absorbed_ps = absorbed / rates.attention_flops * PS
    ends = heads * (attention.nope_dim + attention.rope_dim + attention.value_dim) * ACTIVATION_BYTES
    base = Core(
        reach=FULL,
        kernel_ps=rates.kernel_ps * count,
        query_ps=ends * count / rates.attention_bytes * PS,
        step_bytes=latent,
        streams=1,
        items=count,
        step_ps=absorbed_ps,
    )
    indexer, own = attention.indexer, attention.own_indexer
    if indexer is None:
        expanding = attention.key_up(shard.tp).parameters + attention.value_up(shard.tp).parameters
        expanded = count * attention.flops_per_pair // attention.heads * heads
        return replace(
            base,
            pair_ps=expanded / rates.attention_flops * PS,
            kv_ps=ends * count / rates.attention_bytes * PS,
            cached_ps=2 * expanding * count / rates.half.flops * PS,
        )
    scored = 2 * own.heads * own.head_dim / rates.fastest_flops if own is not None else 0.0
    keys = attention.kv_other_bytes / rates.attention_bytes
    return replace(
        base,
        reach=Reach(window=indexer.top),
        kernel_ps=rates.kernel_ps * (count if own is None else 3 * count),
        pair_ps=absorbed_ps,
        kv_ps=latent / rates.attention_bytes * PS,
        scan_ps=scored * count * PS,
        scan_step_ps=max(scored, keys) * count * PS,
    )


def _linear(rates: Rates, shard: Shard, attention: LinearAttention, count: int) -> Core:
    flops = attention.flops_per_token * share(attention.heads, shard.tp) / attention.heads
    state = 2 * attention.state_bytes(shard.tp)
    moved = state / attention.chunk / rates.attention_bytes
    return Core(
        reach=FULL,
        kernel_ps=2 * rates.kernel_ps * count,
        query_ps=count * max(flops / rates.attention_flops, moved) * PS,
        sequence_ps=count * state / rates.attention_bytes * PS,
    )


def projections(
    rates: Rates, shard: Shard, layer: Layer, formats: FormatOf, is_decode: bool
) -> tuple[list[Curve], list[Curve]]:
    """The products and the passes of attention around its core, for m tokens."""
    attention = layer.attention
    if attention is None:
        return [], []
    products = [
        whole_product(rates, matrix, formats(layer, matrix))
        for matrix in products_of(attention, shard.tp, is_decode)
    ]
    passes = [elementwise(rates, size) for size in _pass_bytes(attention, layer, shard, is_decode)]
    return products, passes


def products_of(attention: Attention, tp: int, is_decode: bool) -> tuple[Matrix, ...]:
    """The matrices in use; expanding latents is one product for keys and values of all heads."""
    if not isinstance(attention, LatentAttention) or is_decode or attention.indexer is not None:
        return attention.matrices(tp)
    up = Matrix(
        "attention",
        attention.key_up(tp).count * (attention.nope_dim + attention.value_dim),
        attention.kv_rank,
    )
    return (attention.down, attention.query(tp), up, *attention.index(), attention.output(tp))


def _pass_bytes(attention: Attention, layer: Layer, shard: Shard, is_decode: bool) -> list[int]:
    """Bytes of each pass for a token: rotary embedding with what goes to the cache, and what a kind adds."""
    tp = shard.tp
    appended = layer.kv_bytes(kv_number_bytes(shard.kv), tp)
    if isinstance(attention, GroupedAttention):
        query = attention.heads * attention.head_dim // tp
        key = share(attention.kv_heads, tp) * attention.head_dim
        rotary = 2 * (query + key) * ACTIVATION_BYTES + appended
        gate = 3 * (attention.heads * attention.value_dim // tp) * ACTIVATION_BYTES
        return [rotary, gate] if attention.is_gated else [rotary]
    if isinstance(attention, LatentAttention):
        heads = attention.heads // tp
        rotary = 2 * (heads + 1) * attention.rope_dim * ACTIVATION_BYTES + appended
        norms = 2 * ((attention.query_rank or 0) + attention.kv_rank) * ACTIVATION_BYTES
        keys = 2 * heads * (attention.nope_dim + attention.rope_dim) * ACTIVATION_BYTES
        is_expanded = not is_decode and attention.indexer is None
        return [norms, rotary, keys] if is_expanded else [norms, rotary]
    assert isinstance(attention, LinearAttention)
    inner = attention.heads * attention.value_dim // tp
    return [2 * share(attention.conv_channels, tp) * ACTIVATION_BYTES, 3 * inner * ACTIVATION_BYTES]
