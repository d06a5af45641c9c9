"""Attention as it is measured: cuDNN and FlashAttention 2 for prompts, a paged kernel for decode steps.

cuDNN's causal mask cannot start after a prefix here, so that a cached prefix is attended to apart, and the
two parts are joined by their weights, as cascades do. FlashAttention 2 is the one inside of torch. The paged
kernel is launched in the way that is fastest on the GPU at hand.
Tensors are [prompt, token, head, number].
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import inf
from typing import Any

PROGRAMS_PER_MULTIPROCESSOR = 8
SHORTEST_CHUNK = 256
DOT_ROWS = 16  # the smallest number of rows of a tensor core product
TRIED_SEQUENCES, TRIED_TOKENS, TRIED_PAGE, TRIES = 64, 4096, 64, 10
TRIED_HEADS, TRIED_KV_HEADS, TRIED_DIM = 32, 8, 128


@dataclass(frozen=True, slots=True)
class Launch:
    """How the paged kernel is launched: tokens that it takes at once, warps, and stages of its pipeline."""

    block: int
    warps: int
    stages: int


LAUNCHES = (
    *(Launch(64, 4, stages) for stages in (3, 2, 1)),
    *(Launch(128, warps, stages) for warps in (4, 8) for stages in (3, 2, 1)),
    Launch(256, 8, 2),
    Launch(256, 8, 1),
)


def cudnn(q: Any, k: Any, v: Any, causal: bool, weighted: bool = False) -> tuple[Any, Any]:
    """Attention by cuDNN, and the logarithm of the sums of weights where asked for."""
    import torch  # noqa: PLC0415

    out, weights, *_ = torch.ops.aten._scaled_dot_product_cudnn_attention(
        q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), None, weighted, 0.0, causal, False
    )
    return out.transpose(1, 2), weights


def cudnn_after(q: Any, k: Any, v: Any, prefix_k: Any, prefix_v: Any) -> Any:
    """Causal attention of one prompt's new tokens over a prefix and over themselves."""
    import torch  # noqa: PLC0415

    from sim.calibrate import kernels  # noqa: PLC0415

    _, tokens, heads, dim = q.shape
    parts = (cudnn(q, prefix_k, prefix_v, False, True), cudnn(q, k, v, True, True))
    (first, one), (second, two) = (
        (part.reshape(tokens, heads, dim).contiguous(), weights.contiguous()) for part, weights in parts
    )
    out = torch.empty_like(second)
    kernels.join_two[(tokens,)](first, second, one, two, out, tokens, heads, power_of_two(heads), dim)
    return out


def flash_2(q: Any, k: Any, v: Any) -> Any:
    """Causal attention by FlashAttention 2; the last query sees all keys."""
    import torch  # noqa: PLC0415

    forward = torch.ops.aten._flash_attention_forward
    return forward(q, k, v, None, None, q.shape[1], k.shape[1], 0.0, True, False)[0]


def power_of_two(number: int) -> int:
    """The smallest power of two that is no smaller."""
    return 1 << (number - 1).bit_length()


def chunk_tokens(contexts: Sequence[int], kv_heads: int, multiprocessors: int, page_tokens: int) -> int:
    """How many tokens of context one program reduces, in whole pages: enough programs, none too short."""
    fair = sum(contexts) * kv_heads / (multiprocessors * PROGRAMS_PER_MULTIPROCESSOR)
    chunks = max(1, round(max(contexts) / max(fair, SHORTEST_CHUNK)))
    return -(-max(contexts) // (chunks * page_tokens)) * page_tokens


@dataclass(frozen=True, slots=True)
class Batch:
    """Sequences of a decode step: where their context lies, and how it is cut into chunks."""

    pages: Any
    contexts: Any
    chunk: int
    chunks: int
    page_tokens: int

    @classmethod
    def of(
        cls,
        contexts: Sequence[int],
        kv_heads: int,
        page_tokens: int,
        cache_pages: int,
        device: Any,
        seed: int = 1,
    ) -> Batch:
        """Give sequences random pages of a cache."""
        import torch  # noqa: PLC0415

        needed = [-(-context // page_tokens) for context in contexts]
        taken = iter(random.Random(seed).sample(range(cache_pages), sum(needed)))
        table = torch.zeros((len(contexts), max(needed)), dtype=torch.int32)
        for row, count in enumerate(needed):
            table[row, :count] = torch.tensor([next(taken) for _ in range(count)], dtype=torch.int32)
        is_gpu = torch.device(device).type == "cuda"
        processors = torch.cuda.get_device_properties(device).multi_processor_count if is_gpu else 1
        chunk = chunk_tokens(contexts, kv_heads, processors, page_tokens)
        length = torch.tensor(contexts, dtype=torch.int32, device=device)
        return cls(table.to(device), length, chunk, -(-max(contexts) // chunk), page_tokens)

    def slots(self) -> Any:
        """Where in the cache the last token of each sequence lies, counted in tokens."""
        last = self.contexts.long() - 1
        page = self.pages.gather(1, (last // self.page_tokens)[:, None])[:, 0]
        return page.long() * self.page_tokens + last % self.page_tokens


def paged(q: Any, k_cache: Any, v_cache: Any, batch: Batch, out: Any) -> None:
    """Attend from one token of each sequence to its context: q and out are [sequence, head, number]."""
    launch = fastest(k_cache.dtype) if q.is_cuda else LAUNCHES[0]
    paged_by(launch, (q, k_cache, v_cache), batch, out)


@cache
def fastest(kept: Any) -> Launch:
    """The launch that is fastest here for a number format, tried on a batch like many."""
    import torch  # noqa: PLC0415

    pages = TRIED_SEQUENCES * TRIED_TOKENS // TRIED_PAGE
    shape = (pages, TRIED_PAGE, TRIED_KV_HEADS, TRIED_DIM)
    k, v = (torch.randn(shape, dtype=torch.bfloat16, device="cuda").to(kept) for _ in range(2))
    q = torch.randn(TRIED_SEQUENCES, TRIED_HEADS, TRIED_DIM, dtype=torch.bfloat16, device="cuda")
    out = torch.empty_like(q)
    batch = Batch.of((TRIED_TOKENS,) * TRIED_SEQUENCES, TRIED_KV_HEADS, TRIED_PAGE, pages, "cuda")

    def seconds(launch: Launch) -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        try:
            for _ in range(TRIES):
                paged_by(launch, (q, k, v), batch, out)
        except Exception:  # more shared memory or registers than this GPU has
            return inf
        begin.record()
        for _ in range(TRIES):
            paged_by(launch, (q, k, v), batch, out)
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end))

    return min(LAUNCHES, key=seconds)


def paged_by(launch: Launch, qkv: tuple[Any, Any, Any], batch: Batch, out: Any) -> None:
    """Decode attention by the paged kernels, launched in one way."""
    import torch  # noqa: PLC0415

    from sim.calibrate import kernels  # noqa: PLC0415

    q, k_cache, v_cache = qkv
    sequences, heads, dim = q.shape
    kv_heads = k_cache.shape[-2]
    group = heads // kv_heads
    parts = torch.empty((sequences, heads, batch.chunks, dim), dtype=torch.float32, device=q.device)
    weights = torch.empty((sequences, heads, batch.chunks), dtype=torch.float32, device=q.device)
    kernels.attend_chunk[(sequences, kv_heads, batch.chunks)](
        q,
        q.stride(0),
        k_cache,
        v_cache,
        batch.pages,
        batch.pages.stride(0),
        batch.contexts,
        parts,
        weights,
        batch.chunk,
        batch.chunks,
        dim**-0.5,
        kv_heads,
        group,
        max(DOT_ROWS, power_of_two(group)),
        dim,
        batch.page_tokens,
        launch.block,
        num_warps=launch.warps,
        num_stages=launch.stages,
    )
    kernels.join_chunks[(sequences, heads)](
        parts, weights, batch.contexts, out, batch.chunk, batch.chunks, heads, dim, num_warps=4
    )
