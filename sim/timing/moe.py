"""The cost of a mixture of experts: router, grouped products over the experts that are reached, and moves.

Model: a token takes `active` of E experts, which are not equally popular: expert i (from 1) in proportion to
i^-0.5 (an assumption; the busiest of 256 experts then has eight times its fair share). An expert with chance
p is reached by a batch of m tokens with probability 1 - (1 - p)^m, and then reads its weights; its m p rows
are rounded up to tiles of 64. A grouped product takes

    kernel + sum over experts of max(2 n k rows / FLOP rate, (weights if reached + inputs + outputs) / byte
    rate)

Tensor parallelism splits every expert, so that all GPUs of a replica do the same. Tokens are gathered before
and their results combined after, each a pass over memory, as are the choice of experts and the activation.
Source: for popularity and tiles none better than plausibility; docs/models.md compares with measured kernels.
Ignores: expert parallelism, fusing of the passes, and that tokens of a batch resemble each other.
"""

from __future__ import annotations

from collections.abc import Callable

from sim.catalog.layer import Layer
from sim.catalog.matrix import Matrix
from sim.catalog.mlp import MoeMlp
from sim.catalog.precision import UNQUANTISED, Precision, precision
from sim.timing.curve import Curve
from sim.timing.gemm import elementwise, gemm, quantising, whole_product
from sim.timing.rates import ACTIVATION_BYTES, PS, Rates

SKEW = 0.5
ALIKE = 1.1
TILE_ROWS = 64
BEND_RATIO = 1.25
LAST_BEND_TOKENS = 2**17


def popularity(experts: int, active: int) -> list[tuple[int, float]]:
    """How many experts have which chance to work on a token; neighbours within a tenth are taken as equal.

    The chances sum to `active` unless some experts are certain.
    """
    shares = [(place + 1) ** -SKEW for place in range(experts)]
    scale = active / sum(shares)
    classes: list[tuple[int, float]] = []
    start = 0
    while start < experts:
        end = next((i for i in range(start, experts) if shares[i] < shares[start] / ALIKE), experts)
        mean = sum(shares[start:end]) / (end - start)
        classes.append((end - start, min(1.0, scale * mean)))
        start = end
    return classes


def reached(experts: int, active: int, tokens: float) -> float:
    """How many experts a batch reaches, on average."""
    return sum(count * _reached(chance, tokens) for count, chance in popularity(experts, active))


def moe_curves(rates: Rates, layer: Layer, mlp: MoeMlp, tp: int, formats: FormatOf) -> list[Curve]:
    """All operators of a mixture on one GPU."""
    up, down = mlp.expert_matrices(tp)
    rows = mlp.active * mlp.expert_hidden * ACTIVATION_BYTES
    token = mlp.expert_hidden * ACTIVATION_BYTES
    scores = 2 * mlp.experts * ACTIVATION_BYTES
    inner = 3 if mlp.is_gated else 2
    curves = [gemm(rates, mlp.router, precision(UNQUANTISED)), elementwise(rates, scores)]
    curves += [whole_product(rates, matrix, formats(layer, matrix)) for matrix in mlp.latent_matrices]
    curves.append(elementwise(rates, token + rows))
    curves.append(quantising(rates, up.k, formats(layer, up)))
    curves.append(grouped_product(rates, mlp, up, formats(layer, up)))
    curves.append(elementwise(rates, mlp.active * inner * down.k * ACTIVATION_BYTES))
    curves.append(quantising(rates, mlp.active * down.k, formats(layer, down)))
    curves.append(grouped_product(rates, mlp, down, formats(layer, down)))
    curves.append(elementwise(rates, rows + token))
    shared = mlp.shared_matrices(tp)
    curves += [whole_product(rates, matrix, formats(layer, matrix)) for matrix in shared]
    if shared:
        curves.append(elementwise(rates, inner * shared[1].k * ACTIVATION_BYTES))
    return curves


FormatOf = Callable[[Layer, Matrix], Precision]
"""The precision that a matrix of a layer is in."""


def _reached(chance: float, tokens: float) -> float:
    return 1 - (1 - chance) ** tokens if chance < 1 else min(1.0, tokens)


def grouped_product(rates: Rates, mlp: MoeMlp, matrix: Matrix, weights: Precision) -> Curve:
    """One product over all experts that are reached."""
    numbers, product = matrix.n * matrix.k, rates.products[weights]
    compute = 2 * numbers / product.flops
    read = numbers * product.weight_bytes / product.bytes_per_s
    moved = (matrix.k * product.input_bytes + matrix.n * ACTIVATION_BYTES) / product.bytes_per_s
    classes = popularity(mlp.experts, mlp.active)

    def cost(tokens: float) -> float:
        total = 0.0
        for count, chance in classes:
            rows, part = chance * tokens, _reached(chance, tokens)
            padded = rows + part * (TILE_ROWS - 1) / 2
            total += count * max(compute * padded, read * part + moved * rows)
        return rates.kernel_ps + total * PS

    last = max(compute, moved) * sum(count * chance for count, chance in classes) * PS
    return Curve.sampled(cost, bends(), last)


def bends() -> list[float]:
    """Where a curve over tokens is sampled: every token at first, then in steps of a quarter."""
    places = [1.0]
    while places[-1] < LAST_BEND_TOKENS:
        places.append(max(places[-1] + 1, float(round(places[-1] * BEND_RATIO))))
    return places
