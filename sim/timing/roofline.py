"""Times of a replica from a roofline of its model's operators, compiled to a few coefficients.

Model: prefill = host + max(launching, layers + attention + LM head of one token per prompt). Attention of a
prompt with n new and c cached tokens takes 4 x heads x head_dim x (n c + n (n + 1) / 2) FLOP a layer, or the
time to read its KV if that is longer. A decode step = host + operators at the batch size + a fixed time per
sequence and KV head + reading the KV of all tokens of context. Source: see sim.timing.operators.
Ignores: see there; also jitter, warm-up, and prefills that run while their KV leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from sim.timing import operators
from sim.timing.operators import ACTIVATION_BYTES, PS, Rates
from sim.timing.placement import Placement
from sim.timing.timing import Chunk, DecodeTable


class Roofline:
    """A Timing whose prefill costs a bisection and one pass over the batch."""

    def __init__(self, placement: Placement) -> None:
        self.placement = placement
        self.rates = rates = Rates.of(placement)
        shard, engine = placement.shard, placement.engine
        model = shard.model
        layers = model.layers
        self._tokens = operators.layer(placement, rates).times(layers) + operators.embedding(placement, rates)
        self._prompts = operators.head(placement, rates)
        self._host_ps = engine.prefill_host_time_ps
        self._launch_ps = engine.prefill_launch_time_ps * layers
        self._kernels_ps = rates.kernel_ps * layers
        vector = model.heads // shard.tp * model.head_dim
        self._pair_ps = 4 * vector * layers / rates.attention_flops * PS
        self._kv_ps = shard.kv_bytes_per_token_per_gpu / rates.attention_bytes * PS
        self._query_ps = 2 * vector * ACTIVATION_BYTES * layers / rates.attention_bytes * PS

    def prefill_ps(self, chunks: Sequence[Chunk]) -> int:
        """Duration of one prefill batch of (new, cached) tokens."""
        tokens = doubled_pairs = context = 0
        for new, cached in chunks:
            tokens += new
            context += new + cached
            doubled_pairs += new * (2 * cached + new + 1)
        compute = self._pair_ps * doubled_pairs / 2
        memory = self._kv_ps * context + self._query_ps * tokens
        attention = self._kernels_ps + (compute if compute > memory else memory)
        busy = self._tokens(tokens) + attention + self._prompts(len(chunks))
        return self._host_ps + round(busy if busy > self._launch_ps else self._launch_ps)

    def decode_table(self, max_batch: int) -> DecodeTable:
        """Durations of decode steps of 1 to `max_batch` sequences."""
        batches = range(1, max_batch + 1)
        return DecodeTable(
            [0, *[self._step_base_ps(batch) for batch in batches]],
            [0, *[self._step_per_token_ps(batch) for batch in batches]],
        )

    def _step_base_ps(self, batch: int) -> int:
        shard, engine = self.placement.shard, self.placement.engine
        size = engine.padded_batch(batch)
        items = size * shard.model.kv_heads_per_gpu(shard.tp) * shard.model.layers
        gpu_ps = self._tokens(size) + self._kernels_ps + self._prompts(size)
        return engine.decode_host_time_ps + items * engine.decode_item_time_ps + round(gpu_ps)

    def _step_per_token_ps(self, batch: int) -> int:
        """Time to read the KV of one token of context, rounded up to whole picoseconds."""
        shard, limit = self.placement.shard, self.placement.engine.decode_stream_bytes_per_s
        rate = self.rates.attention_bytes
        if limit is not None:
            rate = min(rate, batch * shard.model.kv_heads_per_gpu(shard.tp) * limit)
        return ceil(shard.kv_bytes_per_token_per_gpu / rate * PS)
