"""Before anything is timed: do the kernels compute what they should? A fast wrong kernel measures nothing.

Decode attention over shuffled pages and attention behind a prefix are held against plain products in float32.
"""

from __future__ import annotations

from typing import Any

from sim.base.errors import UnsupportedError
from sim.calibrate import attention
from sim.calibrate.attention import Batch

HEADS, KV_HEADS, DIM, PAGE_TOKENS, PAGES = 8, 2, 128, 64, 40
CONTEXTS = (700, 1, 300, 64)
NEW, CACHED = 100, 333
TOLERANCE = 0.03
"""Of numbers around 1 in bf16, which has three digits."""


def prove(device: str = "cuda") -> None:
    """Compare, and refuse to go on with kernels that are wrong here."""
    import torch  # noqa: PLC0415

    torch.manual_seed(1)
    for name, error in (
        ("decode attention", decode_error(device, torch.bfloat16)),
        ("decode attention over FP8", decode_error(device, torch.float8_e4m3fn)),
        ("attention behind a prefix", prefix_error(device)),
    ):
        if not error < TOLERANCE:
            raise UnsupportedError(
                f"{name} is wrong by {error:.3g} on this machine, so that its times would mean nothing",
                "another version of torch and triton, or --only gemm,copies",
            )


def decode_error(device: str, kept: Any) -> float:
    """The largest error of a decode step's attention."""
    import torch  # noqa: PLC0415

    shape = (PAGES, PAGE_TOKENS, KV_HEADS, DIM)
    k_cache, v_cache = (torch.randn(shape, device=device).to(kept) for _ in range(2))
    batch = Batch.of(CONTEXTS, KV_HEADS, PAGE_TOKENS, PAGES, device)
    q = torch.randn(len(CONTEXTS), HEADS, DIM, dtype=torch.bfloat16, device=device)
    out = torch.empty_like(q)
    attention.paged(q, k_cache, v_cache, batch, out)
    worst = 0.0
    for i, context in enumerate(CONTEXTS):
        pages = batch.pages[i, : -(-context // PAGE_TOKENS)].long()
        k, v = (cache[pages].flatten(0, 1)[None, :context].float() for cache in (k_cache, v_cache))
        wanted = plain(q[i][None, None].float(), k, v)
        worst = max(worst, float((out[i].float() - wanted[0, 0]).abs().max()))
    return worst


def prefix_error(device: str) -> float:
    """The largest error of causal attention behind a prefix."""
    import torch  # noqa: PLC0415

    def drawn(tokens: int, heads: int) -> Any:
        return torch.randn(1, tokens, heads, DIM, dtype=torch.bfloat16, device=device)

    q, k, v = drawn(NEW, HEADS), drawn(CACHED + NEW, KV_HEADS), drawn(CACHED + NEW, KV_HEADS)
    out = attention.cudnn_after(q, k[:, CACHED:], v[:, CACHED:], k[:, :CACHED], v[:, :CACHED])
    return float((out.float() - plain(q.float(), k.float(), v.float())[0]).abs().max())


def plain(q: Any, k: Any, v: Any) -> Any:
    """Attention of the last tokens of prompts over all, by the textbook."""
    import torch  # noqa: PLC0415

    group = q.shape[2] // k.shape[2]
    k, v = k.repeat_interleave(group, 2), v.repeat_interleave(group, 2)
    scores = torch.einsum("bthd,bshd->bhts", q, k) * q.shape[3] ** -0.5
    unseen = torch.ones(q.shape[1], k.shape[1], device=q.device).triu(k.shape[1] - q.shape[1] + 1).bool()
    return torch.einsum("bhts,bshd->bthd", scores.masked_fill(unseen, float("-inf")).softmax(-1), v)
