"""From a case to work for the GPU: a function that launches it, and how many launches that are.

Operands are random. A single operator is launched many times over different operands, so that its weights
come from memory and not from the cache of the last launch: together they are several times the L2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from itertools import cycle, islice
from typing import Any

from sim.calibrate import attention
from sim.calibrate.attention import Batch
from sim.calibrate.cases import (
    Case,
    CopyCase,
    DecodeAttentionCase,
    DecodeCase,
    GemmCase,
    PrefillAttentionCase,
    PrefillCase,
    RaggedCase,
)
from sim.calibrate.llama import Llama, randomise
from sim.calibrate.meter import RefusedError

COLD_BYTES = 256 * 1024**2
MOST_OPERANDS = 32
MOST_LAUNCHES = 200
SHORTEST_S = 2e-3
ASSUMED_FLOPS, ASSUMED_BYTES_PER_S, ASSUMED_COPY_BYTES_PER_S = 6e14, 3e12, 5e10
PAGE_TOKENS = 64


@dataclass(frozen=True, slots=True)
class Work:
    """What to launch, how many operators that is, and whether a CUDA graph should hold it.

    Copies are launched one by one, as by engines: the driver treats large ones in a graph differently.
    """

    launch: Callable[[], object]
    launches: int = 1
    is_captured: bool = True


def operands(bytes_each: float) -> int:
    """How many sets of operands keep the L2 cold."""
    return max(1, min(MOST_OPERANDS, round(COLD_BYTES / bytes_each)))


def launches(seconds_each: float, sets: int) -> int:
    """How many launches are timed together: enough to be seen by the clock, each set alike often."""
    wanted = max(1, round(SHORTEST_S / seconds_each))
    return max(sets, min(-(-wanted // sets) * sets, MOST_LAUNCHES))


@singledispatch
def work(case: Case, model: Llama | None) -> Work:
    """The work of a case; `model` is that of its set where the case is a step."""
    raise RefusedError(f"{type(case).__name__} is not measured on one GPU")


@work.register
def _(case: GemmCase, model: Llama | None) -> Work:
    import torch  # noqa: PLC0415

    is_fp8 = case.precision == "fp8"
    size = (1 if is_fp8 else 2) * (case.n * case.k + case.m * case.k)
    sets = operands(size)
    seconds = max(2 * case.m * case.n * case.k / ASSUMED_FLOPS, size / ASSUMED_BYTES_PER_S)
    count = launches(seconds, sets)

    def drawn(rows: int) -> Any:
        numbers = torch.randn(rows, case.k, dtype=torch.bfloat16, device="cuda")
        return numbers.to(torch.float8_e4m3fn) if is_fp8 else numbers

    pairs = [(drawn(case.m), drawn(case.n).t()) for _ in range(sets)]
    out = torch.empty(case.m, case.n, dtype=torch.bfloat16, device="cuda")
    one = torch.ones((), dtype=torch.float32, device="cuda")

    def launch() -> None:
        for x, matrix in islice(cycle(pairs), count):
            if is_fp8:
                torch._scaled_mm(
                    x,
                    matrix,
                    scale_a=one,
                    scale_b=one,
                    out_dtype=torch.bfloat16,
                    use_fast_accum=True,
                )
            else:
                torch.mm(x, matrix, out=out)

    return Work(launch, count)


@work.register
def _(case: PrefillAttentionCase, model: Llama | None) -> Work:
    import torch  # noqa: PLC0415

    if case.cached and case.prompts > 1:
        raise RefusedError("a prefix is measured with one prompt only")
    seen = case.new + case.cached

    def drawn(tokens: int, heads: int) -> Any:
        shape = (case.prompts, tokens, heads, case.head_dim)
        return torch.randn(shape, dtype=torch.bfloat16, device="cuda")

    q, k, v = drawn(case.new, case.heads), drawn(seen, case.kv_heads), drawn(seen, case.kv_heads)
    flops = 4 * case.prompts * case.heads * case.head_dim * case.new * (case.cached + case.new / 2)
    count = launches(max(flops / ASSUMED_FLOPS, 1e-5), 1)

    def launch() -> None:
        for _ in range(count):
            if case.kernel == "flash-2":
                attention.flash_2(q, k, v)
            elif case.cached:
                prefix_k, prefix_v = k[:, : case.cached], v[:, : case.cached]
                attention.cudnn_after(q, k[:, case.cached :], v[:, case.cached :], prefix_k, prefix_v)
            else:
                attention.cudnn(q, k, v, causal=True)

    return Work(launch, count)


@work.register
def _(case: DecodeAttentionCase, model: Llama | None) -> Work:
    import torch  # noqa: PLC0415

    kept = torch.float8_e4m3fn if case.kv == "fp8" else torch.bfloat16
    token_bytes = 2 * case.kv_heads * case.head_dim * kept.itemsize
    tokens = sum(-(-context // PAGE_TOKENS) * PAGE_TOKENS for context in case.each)
    pages = max(tokens, COLD_BYTES // token_bytes) // PAGE_TOKENS
    shape = (pages, PAGE_TOKENS, case.kv_heads, case.head_dim)
    k_cache, v_cache = (torch.empty(shape, dtype=kept, device="cuda") for _ in range(2))
    randomise(torch, k_cache)
    randomise(torch, v_cache)
    sets = operands(tokens * token_bytes)
    batches = [
        Batch.of(case.each, case.kv_heads, PAGE_TOKENS, pages, "cuda", seed=seed) for seed in range(sets)
    ]
    q = torch.randn(case.batch, case.heads, case.head_dim, dtype=torch.bfloat16, device="cuda")
    out = torch.empty_like(q)
    count = launches(max(tokens * token_bytes / ASSUMED_BYTES_PER_S, 5e-6), sets)

    def launch() -> None:
        for batch in islice(cycle(batches), count):
            attention.paged(q, k_cache, v_cache, batch, out)

    return Work(launch, count)


@work.register
def _(case: CopyCase, model: Llama | None) -> Work:
    import torch  # noqa: PLC0415

    start, _, end = case.direction.partition("-")

    def room_in(name: str) -> Any:
        if name == "host":
            return torch.empty(case.bytes, dtype=torch.uint8, pin_memory=True)
        return torch.empty(case.bytes, dtype=torch.uint8, device="cuda:1" if name == "peer" else "cuda:0")

    sets = operands(2 * case.bytes)
    pairs = [(room_in(end), room_in(start)) for _ in range(sets)]
    rate = ASSUMED_BYTES_PER_S if case.direction == "device-device" else ASSUMED_COPY_BYTES_PER_S
    count = launches(max(case.bytes / rate, 2e-6), sets)

    def launch() -> None:
        for target, source in islice(cycle(pairs), count):
            target.copy_(source, non_blocking=True)

    return Work(launch, count, is_captured=False)


def model_for(model: Llama | None) -> Llama:
    """The model of a step's set, which has to be there."""
    if model is None:
        raise RefusedError("no model is loaded")
    return model


def room(model: Llama, tokens: int) -> None:
    """Refuse what the KV cache does not hold."""
    fits = model.cache_pages * model.of.page_tokens
    if tokens > fits:
        raise RefusedError(f"{tokens} tokens of KV, and {fits} fit the memory")


@work.register(DecodeCase)
@work.register(RaggedCase)
def _(case: DecodeCase | RaggedCase, model: Llama | None) -> Work:
    llama = model_for(model)
    room(llama, sum(-(-context // PAGE_TOKENS) * PAGE_TOKENS for context in case.each))
    batch = llama.batch(case.each)
    tokens = llama.decode_tokens(batch)
    return Work(lambda: llama.decoded(batch, tokens))


@work.register
def _(case: PrefillCase, model: Llama | None) -> Work:
    llama = model_for(model)
    room(llama, case.prompts * -(-(case.new + case.cached) // PAGE_TOKENS) * PAGE_TOKENS)
    tokens = llama.prompt_tokens(case.prompts, case.new, case.cached)
    return Work(lambda: llama.prefilled(case.prompts, case.new, case.cached, tokens))
