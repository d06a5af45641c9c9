"""What kernels reach on a GPU, per second: its nominal rates times what its architecture reaches.

Products run at the rate of the precision of their weights, attention in a 16-bit format whatever that is:
bf16, or fp16 where weights are said to be so or the GPU has no other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sim.catalog.precision import HALF, HALVES, Precision, precision
from sim.timing.placement import Placement

PS = 10**12
ACTIVATION_BYTES = 2  # activations travel between operators in bf16


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates of one GPU; `gemm_flops` by what tensor cores compute in."""

    gemm_flops: Mapping[str, float]
    gemm_bytes: float
    attention_flops: float
    attention_bytes: float
    elementwise_bytes: float
    kernel_ps: int

    @classmethod
    def of(cls, placement: Placement) -> Rates:
        """The rates for the precisions of a placement's weights."""
        gpu, part, shard = placement.gpu, placement.efficiency, placement.shard
        weights = shard.model.format(shard.weights)
        half = weights if weights in HALVES else next(name for name in HALVES if name in gpu.dense_flops)
        names = {HALF: half}
        if precision(weights).compute != HALF:
            names[precision(weights).compute] = weights
        return cls(
            gemm_flops={key: gpu.flops(name) * part.gemm(name) for key, name in names.items()},
            gemm_bytes=gpu.memory_bytes_per_s * part.gemm_memory,
            attention_flops=gpu.flops(half) * part.attention(placement.engine.attention_kernel),
            attention_bytes=gpu.memory_bytes_per_s * part.attention_memory,
            elementwise_bytes=gpu.memory_bytes_per_s * part.elementwise_memory,
            kernel_ps=part.kernel_time_ps,
        )

    def flops(self, weights: Precision) -> float:
        """The rate of products with weights of a precision."""
        return self.gemm_flops[weights.compute]


def weight_bytes(weights: Precision) -> float:
    """Bytes of one number of the weights, scales included."""
    return float(weights.bits / 8)


def input_bytes(weights: Precision) -> float:
    """Bytes of one number of the inputs of a product: as the weights, or bf16 where these are widened."""
    return ACTIVATION_BYTES if weights.is_storage_only else weight_bytes(weights)
