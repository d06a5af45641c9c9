"""A Llama-shaped model with random weights on one GPU: its decode steps and prefills, as an engine runs them.

Model: fused QKV and gate-up products, RMS norms with the residual, rotary embedding, paged KV cache, greedy
sampling. In FP8, matrices and what is multiplied with them are E4M3 with one scale for each tensor, quantised
in the kernel before; embedding, LM head and attention stay in bf16, K and V are kept as asked for.
Tokens mean nothing, times do. Ignores: everything that happens on the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sim.calibrate import attention
from sim.calibrate.attention import Batch
from sim.calibrate.cases import Shape, StepSet

GATE_BLOCK = 1024
FEWEST_FP8_ROWS = 16
LONGEST_POSITION = 1 << 17
ROTARY_BASE = 500_000.0


@dataclass(frozen=True, slots=True)
class Layer:
    """The matrices and norms of one layer."""

    qkv: Any
    out: Any
    gate_up: Any
    down: Any
    norms: tuple[Any, Any]


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens to compute: ids, positions, and where their K and V go."""

    ids: Any
    positions: Any
    slots: Any


class Llama:
    """Weights, a KV cache of so many pages, and what is done with them."""

    def __init__(self, of: StepSet, cache_tokens: int, device: str = "cuda") -> None:
        import torch  # noqa: PLC0415

        self.torch, self.of, self.device = torch, of, device
        self.shape: Shape = of.shape
        shape = self.shape
        self.is_fp8 = of.weights == "fp8"
        self.number = torch.float8_e4m3fn if self.is_fp8 else torch.bfloat16
        self.one = torch.ones((), dtype=torch.float32, device=device)
        self.small = torch.full((), 0.02, dtype=torch.float32, device=device)
        q, kv = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
        inner, hidden = shape.intermediate, shape.hidden
        ones = torch.ones(hidden, dtype=torch.bfloat16, device=device)
        self.layers = [
            Layer(
                self._matrix(q + 2 * kv, hidden),
                self._matrix(hidden, q),
                self._matrix(2 * inner, hidden),
                self._matrix(hidden, inner),
                (ones.clone(), ones.clone()),
            )
            for _ in range(shape.layers)
        ]
        self.embedding = 0.02 * torch.randn(shape.vocab, hidden, dtype=torch.bfloat16, device=device)
        self.head = 0.02 * torch.randn(shape.vocab, hidden, dtype=torch.bfloat16, device=device)
        self.norm = ones
        self.cosines, self.sines = self._rotary()
        self.cache_pages = cache_tokens // of.page_tokens
        self.cache = self._cache()

    def _matrix(self, n: int, k: int) -> Any:
        torch = self.torch
        drawn = torch.randn(n, k, dtype=torch.bfloat16, device=self.device)
        return drawn.to(self.number) if self.is_fp8 else drawn.mul_(0.02)

    def _rotary(self) -> tuple[Any, Any]:
        torch, half = self.torch, self.shape.head_dim // 2
        steps = torch.arange(half, dtype=torch.float32, device=self.device) / half
        at = torch.arange(LONGEST_POSITION, dtype=torch.float32, device=self.device)
        angles = at[:, None] * ROTARY_BASE**-steps
        return angles.cos(), angles.sin()

    def _cache(self) -> Any:
        """K and V of all layers, filled with random numbers, so that reading them costs what it costs."""
        torch, shape = self.torch, self.shape
        kept = torch.float8_e4m3fn if self.of.kv == "fp8" else torch.bfloat16
        page = (self.of.page_tokens, shape.kv_heads, shape.head_dim)
        cache = torch.empty((shape.layers, 2, self.cache_pages, *page), dtype=kept, device=self.device)
        for layer in cache:
            randomise(torch, layer)
        return cache

    def linear(self, x: Any, matrix: Any) -> Any:
        """Multiply rows with the transpose of a matrix; the product is bf16."""
        torch = self.torch
        if not self.is_fp8:
            return torch.mm(x, matrix.t())
        return torch._scaled_mm(
            x,
            matrix.t(),
            scale_a=self.one,
            scale_b=self.small,
            out_dtype=torch.bfloat16,
            use_fast_accum=True,
        )

    def batch(self, contexts: Sequence[int]) -> Batch:
        """Sequences with pages of the cache."""
        return Batch.of(contexts, self.shape.kv_heads, self.of.page_tokens, self.cache_pages, self.device)

    def decoded(self, batch: Batch, tokens: Tokens) -> Any:
        """One step: a token of each sequence in, one out. Rows beyond the batch fill up an FP8 product."""
        sequences = batch.contexts.shape[0]
        shape = self.shape
        q = shape.heads * shape.head_dim

        def attend(i: int, qkv: Any) -> Any:
            out = self.torch.zeros(len(qkv), q, dtype=self.number, device=self.device)
            view = qkv[:sequences, :q].unflatten(1, (shape.heads, shape.head_dim))
            attention.paged(view, self.cache[i, 0], self.cache[i, 1], batch, out)
            return out

        delta, residual = self._through(tokens, sequences, attend)
        return self._sampled(delta[:sequences], residual[:sequences])

    def prefilled(self, prompts: int, new: int, cached: int, tokens: Tokens) -> Any:
        """Prefill equal prompts behind cached prefixes, and give the first token of each."""
        shape = self.shape
        q, kv = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim

        def attend(i: int, qkv: Any) -> Any:
            parts = qkv.view(prompts, new, -1).split((q, kv, kv), dim=-1)
            queries, k, v = (part.unflatten(-1, (-1, shape.head_dim)) for part in parts)
            if cached:
                prefix = self.cache[i].flatten(1, 2)[:, None, :cached].to(qkv.dtype)
                out = attention.cudnn_after(queries, k, v, prefix[0], prefix[1])
            else:
                out, _ = attention.cudnn(queries, k, v, causal=True)
            return out.reshape(prompts * new, q).to(self.number).contiguous()

        delta, residual = self._through(tokens, prompts * new, attend)
        last = slice(new - 1, None, new)
        return self._sampled(delta[last].contiguous(), residual[last].contiguous())

    def _through(self, tokens: Tokens, kept: int, attend: Any) -> tuple[Any, Any]:
        """All layers: what the last one adds, and the residual. K and V of the first `kept` rows are kept."""
        from sim.calibrate import kernels  # noqa: PLC0415

        shape, torch = self.shape, self.torch
        delta = self.embedding[tokens.ids]
        residual = torch.zeros_like(delta)
        for i, layer in enumerate(self.layers):
            qkv = self.linear(self._normed(delta, residual, layer.norms[0], self.number), layer.qkv)
            kernels.rotate_and_keep[(kept,)](
                qkv,
                self.cosines,
                self.sines,
                tokens.positions,
                tokens.slots,
                self.cache[i, 0],
                self.cache[i, 1],
                shape.heads,
                shape.kv_heads,
                attention.power_of_two(shape.heads + 2 * shape.kv_heads),
                shape.head_dim // 2,
            )
            delta = self.linear(attend(i, qkv), layer.out)
            pair = self.linear(self._normed(delta, residual, layer.norms[1], self.number), layer.gate_up)
            inner = torch.empty(len(pair), shape.intermediate, dtype=self.number, device=self.device)
            grid = (len(pair), -(-shape.intermediate // GATE_BLOCK))
            kernels.gated[grid](pair, inner, shape.intermediate, GATE_BLOCK)
            delta = self.linear(inner, layer.down)
        return delta, residual

    def _normed(self, delta: Any, residual: Any, scale: Any, number: Any) -> Any:
        from sim.calibrate import kernels  # noqa: PLC0415

        normed = self.torch.empty_like(delta, dtype=number)
        hidden = self.shape.hidden
        size = attention.power_of_two(hidden)
        kernels.add_norm[(len(delta),)](delta, residual, scale, normed, hidden, size, num_warps=8)
        return normed

    def _sampled(self, delta: Any, residual: Any) -> Any:
        normed = self._normed(delta, residual, self.norm, self.torch.bfloat16)
        return self.torch.mm(normed, self.head.t()).argmax(dim=-1)

    def decode_tokens(self, batch: Batch) -> Tokens:
        """The last token of each sequence of a batch; at least as many rows as FP8 products need."""
        torch = self.torch
        sequences = batch.contexts.shape[0]
        rows = max(sequences, FEWEST_FP8_ROWS) if self.is_fp8 else sequences
        return Tokens(self._ids(rows), torch.clamp(batch.contexts.long() - 1, min=0), batch.slots())

    def prompt_tokens(self, prompts: int, new: int, cached: int) -> Tokens:
        """New tokens of equal prompts, each in consecutive pages behind its prefix."""
        torch, page = self.torch, self.of.page_tokens
        at = cached + torch.arange(new, device=self.device)
        spans = torch.arange(prompts, device=self.device) * (-(-(new + cached) // page) * page)
        return Tokens(self._ids(prompts * new), at.repeat(prompts), (spans[:, None] + at).flatten())

    def _ids(self, rows: int) -> Any:
        return self.torch.arange(rows, device=self.device) * 7919 % self.shape.vocab


def randomise(torch: Any, memory: Any) -> None:
    """Fill memory in place with random numbers of moderate size, FP8 by way of its bits."""
    if memory.dtype != torch.float8_e4m3fn:
        memory.normal_()
        return
    bits = memory.view(torch.uint8)
    drawn = torch.randint(0, 128, bits.shape, dtype=torch.uint8, device=bits.device)
    bits.copy_((drawn & 63) | ((drawn & 64) << 1))  # exponents up to 2, and the sign
