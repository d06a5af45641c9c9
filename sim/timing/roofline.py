"""Times of a replica from a roofline of its model's operators, compiled to a few coefficients.

Model: prefill = host + max(launching, layers + attention + LM head of one token per prompt). A decode step =
host + operators at the batch size + a fixed time per sequence, KV head and layer + attention, of which what
grows with context is linear in it. A mixed step is a prefill in whose operators the decoding sequences take
part; they look back as in a decode step. Attention: sim.timing.attention; operators: sim.timing.operators.

Layers that look back a limited number of tokens are charged in a decode step for all tokens where sequences
are expected to be shorter than that, else for a full window, or for half a chunk, the mean over a chunk:
exact on the expected side. `step_ps` gives the exact time of a batch whose contexts are known.

Ignores: see there; also jitter, warm-up, and prefills that run while their KV leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from sim.catalog.reach import FULL, Reach
from sim.timing import operators
from sim.timing.attention import Core, cores
from sim.timing.placement import Placement
from sim.timing.rates import PS, Rates
from sim.timing.timing import Chunk, DecodeTable


class Roofline:
    """A Timing whose prefill costs a bisection and one pass over the batch."""

    def __init__(self, placement: Placement) -> None:
        self.placement = placement
        self.rates = rates = Rates.of(placement)
        shard, engine = placement.shard, placement.engine
        groups = shard.model.groups
        self._prefill_tokens, self._step_tokens = operators.stacks(placement, rates)
        self._prompts = operators.head(placement, rates)
        self._host_ps = engine.prefill_host_time_ps
        self._cached_ps = engine.prefill_cached_token_ps
        self._cache_part = engine.fp8_cache_part if shard.kv == "fp8" else 1.0
        self._layers_ps = engine.layer_time_ps * shard.model.layers
        self._launch_ps = engine.prefill_launch_time_ps * shard.model.layers
        found = [cores(rates, shard, layer, count) for layer, count in groups]
        self._cores = [core for core in found if core is not None]
        # Most models are alike in all layers and look back at everything: their sums are taken in one pass.
        self._only = self._cores[0] if len(self._cores) == 1 and _is_plain(self._cores[0]) else None

    def prefill_ps(self, chunks: Sequence[Chunk]) -> int:
        """Duration of one prefill batch of (new, cached) tokens."""
        tokens = doubled_pairs = context = 0
        for new, cached in chunks:
            tokens += new
            context += new + cached
            doubled_pairs += new * (2 * cached + new + 1)
        if self._only is not None:
            attention = self._only.batch_ps(tokens, context, doubled_pairs)
        else:
            attention = sum(core.prefill_ps(chunks) for core in self._cores)
        busy = self._prefill_tokens(tokens) + attention + self._prompts(len(chunks))
        busy += (context - tokens) * self._cached_ps + self._layers_ps
        return self._with_host(self._host_ps, round(busy if busy > self._launch_ps else self._launch_ps))

    def mixed_ps(self, chunks: Sequence[Chunk], batch: int, context_tokens: int) -> int:
        """Duration of one step with chunks of prompts and `batch` sequences."""
        engine = self.placement.engine
        tokens = sum(new for new, _ in chunks)
        attention = sum(core.prefill_ps(chunks) for core in self._cores)
        states = batch * sum(core.sequence_ps for core in self._cores)
        looking_back = self._flat_ps(batch) + states + self._per_token_ps(batch) * context_tokens
        busy = self._prefill_tokens(tokens + batch) + attention + looking_back
        busy += self._prompts(len(chunks) + batch) + sum(cached for _, cached in chunks) * self._cached_ps
        busy += self._layers_ps
        items = batch * sum(core.items for core in self._cores) * engine.decode_item_time_ps
        host_ps = self._host_ps + batch * engine.sequence_host_time_ps
        return self._with_host(host_ps, items + round(max(busy, self._launch_ps)))

    def decode_table(self, max_batch: int) -> DecodeTable:
        """Durations of decode steps of 1 to `max_batch` sequences."""
        batches = range(1, max_batch + 1)
        return DecodeTable(
            [0, *[self._step_base_ps(batch) for batch in batches]],
            [0, *[ceil(self._per_token_ps(batch)) for batch in batches]],
        )

    def step_ps(self, contexts: Sequence[int]) -> int:
        """Duration of one decode step of sequences with these contexts, with exact windows and chunks."""
        batch = len(contexts)
        held = sum(
            self._read_ps(core, batch) * sum(core.reach.seen(tokens) for tokens in contexts)
            for core in self._cores
        )
        scanned = sum(core.scan_step_ps for core in self._cores) * sum(contexts)
        return self._batch_ps(batch) + round(held + scanned)

    def _step_base_ps(self, batch: int) -> int:
        return self._batch_ps(batch, self._flat_ps(batch))

    def _flat_ps(self, batch: int) -> float:
        """Time to look back where that does not grow with context."""
        return sum(
            self._read_ps(core, batch) * batch * _charged(core.reach)
            for core in self._cores
            if not self._grows(core.reach)
        )

    def _with_host(self, host_ps: int, gpu_ps: int) -> int:
        """Host and GPU one after the other, or at once where the engine prepares a step during the last."""
        return max(host_ps, gpu_ps) if self.placement.engine.overlaps_host else host_ps + gpu_ps

    def _grows(self, reach: Reach) -> bool:
        """Whether sequences of the expected length are still within reach."""
        return reach.limit is None or self.placement.context_tokens < reach.limit

    def _batch_ps(self, batch: int, more_ps: float = 0.0) -> int:
        """What a step costs besides looking back, and something more."""
        engine = self.placement.engine
        size = engine.padded_batch(batch)
        items = size * sum(core.items for core in self._cores)
        kernels = sum(core.kernel_ps for core in self._cores)
        states = batch * sum(core.sequence_ps for core in self._cores)
        gpu_ps = self._layers_ps + self._step_tokens(size) + kernels + self._prompts(size) + states + more_ps
        host_ps = engine.decode_host_time_ps + batch * engine.sequence_host_time_ps
        return self._with_host(host_ps, items * engine.decode_item_time_ps + round(gpu_ps))

    def _per_token_ps(self, batch: int) -> float:
        """Time that each token of context takes in a step."""
        growing = sum(self._read_ps(core, batch) for core in self._cores if self._grows(core.reach))
        return growing + sum(core.scan_step_ps for core in self._cores)

    def _read_ps(self, core: Core, batch: int) -> float:
        """Time to look at a token in reach: to read its KV, or to compute with it if that takes longer."""
        limit = self.placement.engine.decode_stream_bytes_per_s
        rate = self.rates.attention_bytes * self._cache_part
        if limit is not None and core.streams:
            rate = min(rate, batch * core.streams * limit)
        read = core.step_bytes / rate * PS
        return read if read > core.step_ps else core.step_ps


def _is_plain(core: Core) -> bool:
    """Whether a prompt's cost follows from sums over the batch."""
    return core.reach == FULL and not core.scan_ps and not core.cached_ps


def _charged(reach: Reach) -> float:
    """Tokens that a decode step is charged for where the reach is limited."""
    if reach.window is not None:
        return reach.window
    return (reach.chunk or 0) / 2
