"""What kernels reach on a GPU, per second: its nominal rates times what its architecture reaches.

Products run at the rate of the precision of their weights, attention in a 16-bit format whatever that is:
bf16, or fp16 where weights are said to be so or the GPU has no other. MXFP4 runs with FP8 inputs at the FP8
rate where a GPU has FP4 tensor cores; elsewhere it is widened first, as INT4 is everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sim.catalog import Efficiency, Gpu
from sim.catalog.precision import HALF, HALVES, UNQUANTISED, Precision, precision
from sim.timing.placement import Placement

PS = 10**12
ACTIVATION_BYTES = 2  # activations travel between operators in bf16
MICROSCALED, NARROW_INPUTS = "mxfp4", "fp8"


@dataclass(frozen=True, slots=True)
class Product:
    """Rates of products with weights of a precision, and bytes of one number of weights and of inputs.

    `has_block_inputs` says that blocks of inputs are scaled as they come, by a pass of their own.
    """

    flops: float
    bytes_per_s: float
    weight_bytes: float
    input_bytes: float
    has_block_inputs: bool = False


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates of one GPU; `products` by the precision of the weights."""

    products: Mapping[Precision, Product]
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
        names = dict.fromkeys((UNQUANTISED, weights))
        return cls(
            products={precision(name): product(gpu, part, name, half) for name in names},
            attention_flops=gpu.flops(half) * part.attention(placement.engine.attention_kernel),
            attention_bytes=gpu.memory_bytes_per_s * part.attention_memory,
            elementwise_bytes=gpu.memory_bytes_per_s * part.elementwise_memory,
            kernel_ps=part.kernel_time_ps,
        )

    @property
    def half(self) -> Product:
        """Products with weights that are not quantised."""
        return self.products[precision(UNQUANTISED)]

    @property
    def fastest_flops(self) -> float:
        """The fastest products of those that a model makes."""
        return max(each.flops for each in self.products.values())


def product(gpu: Gpu, part: Efficiency, name: str, half: str) -> Product:
    """Rates of products with weights of a precision; `half` is the 16-bit format of the rest."""
    weights = precision(name)
    size = float(weights.bits / 8)
    reading = gpu.memory_bytes_per_s * part.gemm_memory
    if name == MICROSCALED and "fp4" in gpu.dense_flops:
        return Product(gpu.flops(NARROW_INPUTS) * part.gemm(NARROW_INPUTS), reading, size, 1.0, True)
    if weights.compute != HALF:
        return Product(gpu.flops(name) * part.gemm(name), reading, size, size, size < 1.0)
    computing = gpu.flops(half) * part.gemm(half)
    if weights.is_storage_only:
        return Product(computing * part.widened, reading * part.widened, size, ACTIVATION_BYTES)
    return Product(computing, reading, size, size)
