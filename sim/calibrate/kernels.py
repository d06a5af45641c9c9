"""Triton kernels of a Llama-shaped model, fused as serving engines fuse them. Imported on a GPU machine only.

Decode attention reads a paged KV cache: the context of a sequence is cut into chunks that different programs
reduce (flash decoding), and a second kernel joins their parts. Query heads of a KV head share one reading.
The cache is laid out [page, token, head, number], so that consecutive pages are one long prompt.
Arguments in capitals are constants at compile time; Triton reads annotations, so that no other has one.
Sums are float32, products of matrices bf16.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def add_norm(
    delta,
    residual,
    scale,
    normed,
    hidden,
    HIDDEN: tl.constexpr,
):
    """Add to the residual and write its RMS norm, in the number format of the output; one row a program."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, HIDDEN)
    inside = at < hidden
    x = tl.load(delta + row * hidden + at, mask=inside, other=0.0).to(tl.float32)
    x += tl.load(residual + row * hidden + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(residual + row * hidden + at, x.to(residual.dtype.element_ty), mask=inside)
    root = tl.rsqrt(tl.sum(x * x, 0) / hidden + 1e-5)
    y = x * root * tl.load(scale + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(normed + row * hidden + at, y.to(normed.dtype.element_ty), mask=inside)


@triton.jit
def rotate_and_keep(
    qkv,
    cosines,
    sines,
    positions,
    slots,
    k_cache,
    v_cache,
    q_heads,
    kv_heads,
    HEADS: tl.constexpr,
    HALF: tl.constexpr,
):
    """Rotate q and k of a token in place, and put its K and V into their slot of the cache."""
    token = tl.program_id(0).to(tl.int64)
    position = tl.load(positions + token)
    slot = tl.load(slots + token).to(tl.int64)
    head = tl.arange(0, HEADS)[:, None]
    at = tl.arange(0, HALF)[None, :]
    first = qkv + token * (q_heads + 2 * kv_heads) * 2 * HALF + head * 2 * HALF + at
    turned = head < q_heads + kv_heads
    low = tl.load(first, mask=turned, other=0.0).to(tl.float32)
    high = tl.load(first + HALF, mask=turned, other=0.0).to(tl.float32)
    cosine = tl.load(cosines + position * HALF + at)
    sine = tl.load(sines + position * HALF + at)
    new_low = low * cosine - high * sine
    new_high = high * cosine + low * sine
    tl.store(first, new_low.to(qkv.dtype.element_ty), mask=turned)
    tl.store(first + HALF, new_high.to(qkv.dtype.element_ty), mask=turned)
    is_k = turned & (head >= q_heads)
    k_at = k_cache + (slot * kv_heads + head - q_heads) * 2 * HALF + at
    tl.store(k_at, new_low.to(k_cache.dtype.element_ty), mask=is_k)
    tl.store(k_at + HALF, new_high.to(k_cache.dtype.element_ty), mask=is_k)
    is_v = (head >= q_heads + kv_heads) & (head < q_heads + 2 * kv_heads)
    v_at = v_cache + (slot * kv_heads + head - q_heads - kv_heads) * 2 * HALF + at
    v_low = tl.load(first, mask=is_v, other=0.0)
    v_high = tl.load(first + HALF, mask=is_v, other=0.0)
    tl.store(v_at, v_low.to(v_cache.dtype.element_ty), mask=is_v)
    tl.store(v_at + HALF, v_high.to(v_cache.dtype.element_ty), mask=is_v)


@triton.jit
def gated(pair, product, inner, BLOCK: tl.constexpr):
    """silu(gate) x up, of rows that hold the gate's half and then the other."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < inner
    gate = tl.load(pair + row * 2 * inner + at, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(pair + row * 2 * inner + inner + at, mask=inside, other=0.0).to(tl.float32)
    y = gate / (1.0 + tl.exp(-gate)) * up
    tl.store(product + row * inner + at, y.to(product.dtype.element_ty), mask=inside)


@triton.jit
def attend_pages(
    queries,
    k_cache,
    v_cache,
    pages,
    begin,
    end,
    scale,
    kv_heads,
    kv_head,
    ROWS: tl.constexpr,
    DIM: tl.constexpr,
    PAGE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Attend from some queries to the tokens from `begin` to `end`: peak, total weight, weighted sum."""
    at = tl.arange(0, DIM)
    token = tl.arange(0, BLOCK)
    peak = tl.full([ROWS], -1e30, tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    acc = tl.zeros([ROWS, DIM], tl.float32)
    for start in range(begin, end, BLOCK):
        valid = start + token < end
        page = tl.load(pages + (start + token) // PAGE, mask=valid, other=0).to(tl.int64)
        spot = ((page * PAGE + (start + token) % PAGE) * kv_heads + kv_head)[:, None] * DIM + at[None, :]
        k = tl.load(k_cache + spot, mask=valid[:, None], other=0.0).to(queries.dtype)
        scores = tl.where(valid[None, :], tl.dot(queries, tl.trans(k)) * scale, -1e30)
        new_peak = tl.maximum(peak, tl.max(scores, 1))
        p = tl.exp(scores - new_peak[:, None])
        shrink = tl.exp(peak - new_peak)
        v = tl.load(v_cache + spot, mask=valid[:, None], other=0.0).to(queries.dtype)
        total = total * shrink + tl.sum(p, 1)
        acc = acc * shrink[:, None] + tl.dot(p.to(queries.dtype), v)
        peak = new_peak
    return peak, total, acc


@triton.jit
def attend_chunk(
    q,
    q_stride,
    k_cache,
    v_cache,
    pages,
    pages_stride,
    contexts,
    parts,
    weights,
    chunk,
    chunks,
    scale,
    kv_heads,
    GROUP: tl.constexpr,
    ROWS: tl.constexpr,
    DIM: tl.constexpr,
    PAGE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Attend from the query heads of one KV head of one sequence to one chunk of its context."""
    sequence, kv_head, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    begin = part * chunk
    end = tl.minimum(begin + chunk, tl.load(contexts + sequence))
    if begin < end:
        head = kv_head * GROUP + tl.arange(0, ROWS)
        real = (tl.arange(0, ROWS) < GROUP)[:, None]
        at = tl.arange(0, DIM)[None, :]
        queries = tl.load(q + sequence * q_stride + head[:, None] * DIM + at, mask=real, other=0.0)
        if k_cache.dtype.element_ty.primitive_bitwidth == 8:
            queries = queries.to(tl.float16)  # FP8 becomes float16 in one instruction, bf16 in several
        pages += sequence * pages_stride
        peak, total, acc = attend_pages(
            queries, k_cache, v_cache, pages, begin, end, scale, kv_heads, kv_head, ROWS, DIM, PAGE, BLOCK
        )
        place = (sequence * kv_heads * GROUP + head) * chunks + part
        tl.store(parts + place[:, None] * DIM + at, acc / total[:, None], mask=real)
        tl.store(weights + place, peak + tl.log(total), mask=tl.arange(0, ROWS) < GROUP)


@triton.jit
def join_chunks(
    parts,
    weights,
    contexts,
    out,
    chunk,
    chunks,
    heads,
    DIM: tl.constexpr,
):
    """Join what the chunks of a sequence gave for one query head."""
    sequence, head = tl.program_id(0), tl.program_id(1)
    context = tl.load(contexts + sequence)
    at = tl.arange(0, DIM)
    place = (sequence * heads + head) * chunks
    peak = tl.full([1], -1e30, tl.float32)
    total = tl.zeros([1], tl.float32)
    acc = tl.zeros([DIM], tl.float32)
    for part in range(tl.cdiv(context, chunk)):
        weight = tl.load(weights + place + part)
        new_peak = tl.maximum(peak, weight)
        shrink = tl.exp(peak - new_peak)
        share = tl.exp(weight - new_peak)
        acc = acc * shrink + share * tl.load(parts + (place + part) * DIM + at)
        total = total * shrink + share
        peak = new_peak
    y = acc / total
    tl.store(out + (sequence * heads + head) * DIM + at, y.to(out.dtype.element_ty))


@triton.jit
def join_two(
    first,
    second,
    first_weight,
    second_weight,
    out,
    tokens,
    heads,
    HEADS: tl.constexpr,
    DIM: tl.constexpr,
):
    """Join attention over a cached prefix with that over the new tokens, for all heads of a token.

    The parts are [token, head, number], their weights (logarithms of sums) [head, token].
    """
    token = tl.program_id(0).to(tl.int64)
    head = tl.arange(0, HEADS)
    real = head < heads
    at = (token * heads + head)[:, None] * DIM + tl.arange(0, DIM)[None, :]
    one = tl.load(first_weight + head * tokens + token, mask=real, other=0.0)
    two = tl.load(second_weight + head * tokens + token, mask=real, other=0.0)
    share = 1.0 / (1.0 + tl.exp(two - one))
    x = tl.load(first + at, mask=real[:, None], other=0.0).to(tl.float32) * share[:, None]
    x += tl.load(second + at, mask=real[:, None], other=0.0).to(tl.float32) * (1.0 - share)[:, None]
    tl.store(out + at, x.to(out.dtype.element_ty), mask=real[:, None])
