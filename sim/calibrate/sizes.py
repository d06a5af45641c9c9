"""Which cases are measured: shapes of models in use, from one token to the longest that matter.

GEMMs are those of the chosen model on one GPU, and of Llama-3.1-70B on one and on eight. Sizes between powers
of two are there because tiles make steps. Contexts of ragged batches are drawn from a lognormal with a fixed
seed, so that every machine gets the same.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from sim.calibrate.cases import (
    AllReduceCase,
    Case,
    CopyCase,
    DecodeAttentionCase,
    DecodeCase,
    GemmCase,
    PrefillAttentionCase,
    PrefillCase,
    RaggedCase,
    Shape,
    StepSet,
)

KIB, MIB = 1024, 1024**2
PAGE_TOKENS = 64
LARGE_SHAPES = ((10240, 8192), (8192, 8192), (57344, 8192), (8192, 28672))
SPLIT_SHAPES = ((1280, 8192), (8192, 1024), (7168, 8192), (8192, 3584))
"""n and k of the GEMMs of a layer of Llama-3.1-70B, on one GPU and on each of eight."""
ROWS = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
OWN_ROWS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1000, 1024, 1536, 2048, 3000)
MANY_ROWS = (4096, 6000, 8192, 16384)
PROMPTS = (128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768)
PREFIXES = tuple((new, cached) for new in (64, 256, 1024, 4096) for cached in (1024, 4096, 16384, 65536))
PROMPT_BATCHES = ((32, 64), (16, 256), (4, 1024), (8, 2048), (2, 8192))
BATCHES = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512)
CONTEXTS = (128, 1024, 4096, 16384, 65536)
SHORT_PROMPTS = (1, 16, 64, 128, 256, 384, 512, 768, 1024, 1536)
STEP_PROMPTS = (*SHORT_PROMPTS, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 32768)
STEP_PRECISIONS = (("bf16", "bf16"), ("fp8", "bf16"), ("fp8", "fp8"))
"""Of weights and of the KV cache."""
MOST_STEP_TOKENS = 524_288
RAGGED_BATCHES = (16, 64, 128)
RAGGED_DRAWS = 3
COPY_BYTES = tuple(64 * KIB * 4**power for power in range(8))
REDUCED_BYTES = tuple(8 * KIB * 2**power for power in range(16))
TABLES = ("steps", "gemm", "attention", "copies", "all-reduce")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the user asked for: the model of the steps, precisions of its weights, and which tables."""

    shape: Shape
    precisions: tuple[str, ...] = ("bf16", "fp8")
    tables: tuple[str, ...] = TABLES
    quick: bool = False


def cases(wanted: Wanted, gpus: int) -> list[Case]:
    """Everything to be measured on a machine of some GPUs, in order; `quick` takes a few of each kind."""
    shape = wanted.shape
    made: dict[str, Iterator[Case]] = {
        "gemm": _gemms(shape, wanted.precisions),
        "attention": _attention(shape, wanted.precisions),
        "copies": _copies(gpus),
        "all-reduce": _all_reduces(gpus),
        "steps": _steps(shape, wanted.precisions),
    }
    found = [case for table in TABLES if table in wanted.tables for case in made[table]]
    return _few(found) if wanted.quick else found


def _few(found: list[Case]) -> list[Case]:
    """Of each kind of case and precision some, spread over the sizes, the first and last among them."""
    kinds: dict[tuple[object, ...], list[Case]] = {}
    for case in found:
        row = case.row()
        marks = [row.get(key) for key in ("precision", "kernel", "kv", "direction")]
        marks += [row.get("cached", 0) > 0, getattr(case, "of", None)]
        kinds.setdefault((case.table, *marks), []).append(case)
    kept = [group[i] for group in kinds.values() for i in sorted({0, len(group) // 2, len(group) - 1})]
    return [case for case in found if case in kept]


def _gemms(shape: Shape, precisions: tuple[str, ...]) -> Iterator[Case]:
    q, kv = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    own = (
        (q + 2 * kv, shape.hidden),
        (shape.hidden, q),
        (2 * shape.intermediate, shape.hidden),
        (shape.hidden, shape.intermediate),
    )
    for precision in precisions:
        for n, k in (*own, *LARGE_SHAPES, *SPLIT_SHAPES):
            rows = (*OWN_ROWS, *MANY_ROWS) if (n, k) in own else ROWS
            yield from (GemmCase(m, n, k, precision) for m in rows)
    yield from (GemmCase(m, shape.vocab, shape.hidden, "bf16") for m in OWN_ROWS if m <= 256)


def _attention(shape: Shape, precisions: tuple[str, ...]) -> Iterator[Case]:
    whole = (shape.heads, shape.kv_heads, shape.head_dim)
    split = (8, 1, 128)  # one of eight GPUs under Llama-3.1-70B
    prompts = [(1, new, 0) for new in PROMPTS] + [(1, new, cached) for new, cached in PREFIXES]
    prompts += [(count, new, 0) for count, new in PROMPT_BATCHES]
    for kernel in ("cudnn", "flash-2"):
        for heads in (whole, split):
            yield from (PrefillAttentionCase(kernel, *heads, *prompt) for prompt in prompts)
    for kv in precisions:
        for heads in (whole, split):
            for batch in (1, 4, 16, 64, 256):
                for context in (512, 2048, 8192, 32768, 131072):
                    if batch * context <= 2 * MOST_STEP_TOKENS:
                        yield DecodeAttentionCase("paged-triton", *heads, kv, batch, (context,))
        for contexts in _draws():
            yield DecodeAttentionCase("paged-triton", *whole, kv, len(contexts), contexts)


def _copies(gpus: int) -> Iterator[Case]:
    directions = ["device-device", "host-device", "device-host", *(["device-peer"] if gpus > 1 else [])]
    for direction in directions:
        yield from (CopyCase(direction, size) for size in COPY_BYTES)


def _all_reduces(gpus: int) -> Iterator[Case]:
    return (AllReduceCase(gpus, size) for size in REDUCED_BYTES if gpus > 1)


def _steps(shape: Shape, precisions: tuple[str, ...]) -> Iterator[Case]:
    """Whole steps; FP8 weights with a KV cache in bf16 and with one in FP8."""
    for weights, kv in (pair for pair in STEP_PRECISIONS if set(pair) <= set(precisions)):
        of = StepSet(shape, weights, kv, PAGE_TOKENS)
        for batch in BATCHES:
            yield from (DecodeCase(of, batch, c) for c in CONTEXTS if batch * c <= MOST_STEP_TOKENS)
        yield from (RaggedCase(of, contexts) for contexts in _draws())
        yield from (PrefillCase(of, 1, new, 0) for new in STEP_PROMPTS)
        yield from (PrefillCase(of, 1, new, cached) for new, cached in PREFIXES)
        yield from (PrefillCase(of, count, new, 0) for count, new in PROMPT_BATCHES)


def _draws() -> Iterator[tuple[int, ...]]:
    """Contexts of ragged batches: median 1,000 tokens, a long tail, cut at 16,384."""
    draw = random.Random(1)
    for batch in RAGGED_BATCHES:
        for _ in range(RAGGED_DRAWS):
            yield tuple(min(16384, max(16, round(draw.lognormvariate(6.9, 1.0)))) for _ in range(batch))
