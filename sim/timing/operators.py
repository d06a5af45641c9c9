"""What the layers of a model do on each GPU of a replica, and what each operator costs.

Model: a layer is its products, passes over memory and all-reduces, one after the other (sim.timing.gemm,
.attention, .moe); attention itself is apart, since it depends on more than the number of tokens. GEMMs have
their real shapes after splitting; norms, rotary embedding, activation and residual are single passes over
memory (a fused engine). Costs are picoseconds for m tokens. Source: the roofline of Williams, Waterman and
Patterson (2009); efficiencies as given in the catalogue. Ignores: the shape of tiles and waves (one
efficiency for all large GEMMs), overlap of operators with each other or with communication, L2 hits,
quantisation passes, and clocks that depend on the data.
"""

from __future__ import annotations

from sim.catalog.attention import LatentAttention
from sim.catalog.layer import Layer
from sim.catalog.matrix import Matrix
from sim.catalog.mlp import DenseMlp, MoeMlp
from sim.catalog.model import Model
from sim.catalog.precision import UNQUANTISED, Precision, precision
from sim.timing.attention import projections
from sim.timing.curve import Curve
from sim.timing.gemm import NOTHING, elementwise, gemm, whole_product
from sim.timing.moe import FormatOf, moe_curves
from sim.timing.placement import Placement, Shard
from sim.timing.rates import ACTIVATION_BYTES, Rates

Operators = tuple[list[Curve], list[Curve]]
"""Products, and passes over memory."""


def stacks(placement: Placement, rates: Rates) -> tuple[Curve, Curve]:
    """All layers but attention itself, and the embedding: for prompts, and for decode steps."""
    prompts: Curve | None = None
    steps: Curve | None = None
    shard, looked_up = placement.shard, embedding(placement, rates)
    for kind, count in shard.model.groups:
        mlp = _mlp(rates, shard, kind)
        prompt = step = layer(placement, rates, kind, mlp, is_decode=False)
        if isinstance(kind.attention, LatentAttention):
            step = layer(placement, rates, kind, mlp, is_decode=True)
        prompts = _added(prompts, prompt.times(count))
        steps = _added(steps, step.times(count))
    return _added(prompts, looked_up), _added(steps, looked_up)


def _added(total: Curve | None, more: Curve) -> Curve:
    return more if total is None else total + more


def layer(placement: Placement, rates: Rates, kind: Layer, mlp: Operators, is_decode: bool) -> Curve:
    """All operators of one layer but attention itself, with its all-reduces."""
    shard = placement.shard
    products, passes = projections(rates, shard, kind, formats_of(shard), is_decode)
    mlp_products, mlp_passes = mlp
    # A norm reads input and residual and writes both.
    norm = elementwise(rates, 4 * shard.model.hidden * ACTIVATION_BYTES)
    norms = [norm] * (kind.norms // shard.model.hidden)
    total = all_reduce(placement).times(all_reduces(kind))
    for operator in (*products, *mlp_products, *norms[:1], *passes, *norms[1:], *mlp_passes):
        total += operator
    return total


def _mlp(rates: Rates, shard: Shard, kind: Layer) -> Operators:
    """The operators of an MLP."""
    mlp, formats = kind.mlp, formats_of(shard)
    if isinstance(mlp, DenseMlp):
        products = mlp.matrices(shard.tp)
        # An activation reads gate and up and writes their product.
        moved = (3 if mlp.is_gated else 2) * products[1].k * ACTIVATION_BYTES
        curves = [whole_product(rates, matrix, formats(kind, matrix)) for matrix in products]
        return curves, [elementwise(rates, moved)]
    if isinstance(mlp, MoeMlp):
        *curves, last = moe_curves(rates, kind, mlp, shard.tp, formats)
        return curves, [last]
    return [], []


def formats_of(shard: Shard) -> FormatOf:
    """Which precision each matrix of a layer is in."""
    quantised, kept = precision(shard.model.format(shard.weights)), precision(UNQUANTISED)

    def format_of(kind: Layer, matrix: Matrix) -> Precision:
        return quantised if kind.is_quantised(matrix) else kept

    return format_of


def embedding(placement: Placement, rates: Rates) -> Curve:
    """Cost the look-up that turns m tokens into vectors."""
    return elementwise(rates, 2 * placement.shard.model.hidden * ACTIVATION_BYTES)


def head(placement: Placement, rates: Rates) -> Curve:
    """Cost the last norm and the LM head, for m tokens whose logits are wanted; not quantised."""
    model = placement.shard.model
    matrix = Matrix("head", -(-model.vocab // placement.shard.tp), model.hidden)
    norm = elementwise(rates, 4 * model.hidden * ACTIVATION_BYTES)
    return norm + gemm(rates, matrix, precision(UNQUANTISED))


def all_reduces(kind: Layer) -> int:
    """All-reduces of a layer: one after attention and one after the MLP."""
    return (kind.attention is not None) + (kind.mlp is not None)


def all_reduces_of(model: Model) -> int:
    """All-reduces of a forward pass."""
    return sum(count * all_reduces(kind) for kind, count in model.groups)


def all_reduce(placement: Placement) -> Curve:
    """One all-reduce of the vectors of m tokens; nothing for one GPU."""
    if placement.collective is None:
        return NOTHING
    return placement.collective.curve().of_scaled(all_reduced_bytes(placement.shard, 1))


def all_reduced_bytes(shard: Shard, tokens: int) -> int:
    """Bytes of the vectors of so many tokens that one all-reduce sums up."""
    return tokens * shard.model.hidden * ACTIVATION_BYTES


def crossing_bytes_per_token(placement: Placement) -> float:
    """Bytes that leave each NVLink domain, and enter it, for every token of a batch; 0 inside one."""
    wire = placement.collective.wire if placement.collective is not None else None
    if wire is None:
        return 0.0
    return all_reduces_of(placement.shard.model) * wire.crossing(all_reduced_bytes(placement.shard, 1))
