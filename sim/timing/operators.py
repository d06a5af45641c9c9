"""What one layer of a dense transformer does on each of its GPUs, and what each operator costs.

Model: an operator is one kernel: a fixed time plus the larger of compute and memory time at the rates that
the architecture's kernels reach. GEMMs have their real shapes after splitting; norms, rotary embedding,
activation and residual are single passes over memory (a fused engine). Costs are picoseconds for m tokens.
Source: the roofline of Williams, Waterman and Patterson (2009); efficiencies as given in the catalogue.
Ignores: the shape of tiles and waves (one efficiency for all large GEMMs), overlap of operators with each
other or with communication, L2 hits, quantisation passes, and clocks that depend on the data.
"""

from __future__ import annotations

from dataclasses import dataclass

from sim.catalog.model import UNQUANTISED_BYTES, precision_bytes
from sim.timing.curve import Curve
from sim.timing.placement import Placement, Shard

PS = 10**12
ACTIVATION_BYTES = 2  # activations travel between operators in bf16
ALL_REDUCES_PER_LAYER = 2  # after attention and after the MLP


@dataclass(frozen=True, slots=True)
class Rates:
    """What kernels reach on a GPU, per second; attention computes in bf16 whatever the weights."""

    gemm_flops: float
    bf16_gemm_flops: float
    gemm_bytes: float
    attention_flops: float
    attention_bytes: float
    elementwise_bytes: float
    kernel_ps: int

    @classmethod
    def of(cls, placement: Placement) -> Rates:
        """Take the nominal rates of the GPU times what its architecture reaches."""
        gpu, part, weights = placement.gpu, placement.efficiency, placement.shard.weights
        bf16 = gpu.flops("bf16")
        return cls(
            gemm_flops=gpu.flops(weights) * part.gemm(weights),
            bf16_gemm_flops=bf16 * part.gemm("bf16"),
            gemm_bytes=gpu.memory_bytes_per_s * part.gemm_memory,
            attention_flops=bf16 * part.attention(placement.engine.attention_kernel),
            attention_bytes=gpu.memory_bytes_per_s * part.attention_memory,
            elementwise_bytes=gpu.memory_bytes_per_s * part.elementwise_memory,
            kernel_ps=part.kernel_time_ps,
        )


def gemm(rates: Rates, shape: tuple[int, int], weight_bytes: int, flops: float) -> Curve:
    """Cost a product of m tokens with an n x k matrix: weights read once, activations read and written."""
    n, k = shape
    compute = 2 * n * k / flops
    weights = n * k * weight_bytes / rates.gemm_bytes
    moved = (k * weight_bytes + n * ACTIVATION_BYTES) / rates.gemm_bytes
    return Curve.roof((rates.kernel_ps, compute * PS), (rates.kernel_ps + weights * PS, moved * PS))


def elementwise(rates: Rates, bytes_per_token: float) -> Curve:
    """Cost a pass over memory."""
    return Curve.roof((rates.kernel_ps, bytes_per_token / rates.elementwise_bytes * PS))


def layer(placement: Placement, rates: Rates) -> Curve:
    """All operators of one layer but attention itself, with its two all-reduces."""
    shard, model = placement.shard, placement.shard.model
    weight_bytes = precision_bytes(shard.weights)
    q = model.heads * model.head_dim // shard.tp
    kv = model.kv_heads_per_gpu(shard.tp) * model.head_dim
    inner = model.intermediate // shard.tp
    shapes = ((q + 2 * kv, model.hidden), (model.hidden, q), (2 * inner, model.hidden), (model.hidden, inner))
    norm = 4 * model.hidden * ACTIVATION_BYTES  # reads input and residual, writes residual and output
    appended = 2 * kv * precision_bytes(shard.kv)
    rotary = 2 * (q + kv) * ACTIVATION_BYTES + appended
    activation = 3 * inner * ACTIVATION_BYTES  # reads gate and up, writes their product
    total = all_reduce(placement).times(ALL_REDUCES_PER_LAYER)
    for shape in shapes:
        total += gemm(rates, shape, weight_bytes, rates.gemm_flops)
    for bytes_per_token in (norm, rotary, norm, activation):
        total += elementwise(rates, bytes_per_token)
    return total


def embedding(placement: Placement, rates: Rates) -> Curve:
    """Cost the look-up that turns m tokens into vectors."""
    return elementwise(rates, 2 * placement.shard.model.hidden * ACTIVATION_BYTES)


def head(placement: Placement, rates: Rates) -> Curve:
    """Cost the last norm and the LM head, for m tokens whose logits are wanted; not quantised."""
    model = placement.shard.model
    shape = (-(-model.vocab // placement.shard.tp), model.hidden)
    norm = elementwise(rates, 4 * model.hidden * ACTIVATION_BYTES)
    return norm + gemm(rates, shape, UNQUANTISED_BYTES, rates.bf16_gemm_flops)


def all_reduce(placement: Placement) -> Curve:
    """One all-reduce of the vectors of m tokens; nothing for one GPU."""
    if placement.collective is None:
        return Curve([0.0], [0.0], [0.0])
    return placement.collective.curve().of_scaled(all_reduced_bytes(placement.shard, 1))


def all_reduced_bytes(shard: Shard, tokens: int) -> int:
    """Bytes of the vectors of so many tokens that one all-reduce sums up."""
    return tokens * shard.model.hidden * ACTIVATION_BYTES


def crossing_bytes_per_token(placement: Placement) -> float:
    """Bytes that leave each NVLink domain, and enter it, for every token of a batch; 0 inside one."""
    wire = placement.collective.wire if placement.collective is not None else None
    if wire is None:
        return 0.0
    layers = placement.shard.model.layers
    return layers * ALL_REDUCES_PER_LAYER * wire.crossing(all_reduced_bytes(placement.shard, 1))
