"""The cost of products and of passes over memory, as curves over the tokens that they work on.

Model: an operator is one kernel: a fixed time plus the larger of compute and memory time.
    product of m tokens with n x k weights = kernel + max(2 n k m / FLOP rate, (weights + inputs + outputs) /
    byte rate)
Inputs of products in NVFP4 and MXFP4 have a scale for each block of numbers, which a pass of its own finds
before the product; scales of FP8 inputs are known beforehand, and applied by whatever made the inputs.
Source: the roofline of Williams, Waterman and Patterson (2009). Ignores: tiles and waves, L2 hits, and clocks
that depend on the data.
"""

from __future__ import annotations

from sim.catalog.matrix import Matrix
from sim.catalog.precision import Precision
from sim.timing.curve import Curve
from sim.timing.rates import ACTIVATION_BYTES, PS, Rates

NOTHING = Curve([0.0], [0.0], [0.0])


def gemm(rates: Rates, matrix: Matrix, weights: Precision) -> Curve:
    """Cost a product of m tokens with all of a matrix, in one kernel."""
    numbers, product = matrix.parameters, rates.products[weights]
    compute = 2 * numbers / product.flops
    read = numbers * product.weight_bytes / product.bytes_per_s
    vectors = matrix.k * product.input_bytes + matrix.n * ACTIVATION_BYTES
    moved = matrix.count * vectors / product.bytes_per_s
    return Curve.roof((rates.kernel_ps, compute * PS), (rates.kernel_ps + read * PS, moved * PS))


def quantising(rates: Rates, numbers: int, weights: Precision) -> Curve:
    """Cost the pass that quantises so many inputs of a token block by block; nothing where none is needed."""
    product = rates.products[weights]
    if not product.has_block_inputs:
        return NOTHING
    return elementwise(rates, numbers * (ACTIVATION_BYTES + product.input_bytes))


def whole_product(rates: Rates, matrix: Matrix, weights: Precision) -> Curve:
    """Cost a product with what its inputs take beforehand."""
    return quantising(rates, matrix.count * matrix.k, weights) + gemm(rates, matrix, weights)


def elementwise(rates: Rates, bytes_per_token: float) -> Curve:
    """Cost a pass over memory."""
    return Curve.roof((rates.kernel_ps, bytes_per_token / rates.elementwise_bytes * PS))
