"""What the operators of a model do on one GPU: FLOP and bytes of each, and how long the roofline says.

Model: the operators of a layer of each kind, and the LM head, at a number of tokens; the same curves that a
replica's times are made of. A product counts weights, inputs and outputs; experts those that are reached;
attention keys, values, queries and results. Operators of equal shape are told once.
Units: FLOP, bytes, picoseconds, tokens. Source: Williams, Waterman and Patterson (2009).
Ignores: passes over memory, all of which lie on the slope of memory, and communication.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sim.catalog.layer import Layer
from sim.catalog.matrix import Matrix
from sim.catalog.mlp import DenseMlp, MoeMlp
from sim.catalog.precision import UNQUANTISED, Precision, precision
from sim.timing.attention import Core, cores, products_of
from sim.timing.gemm import gemm
from sim.timing.moe import grouped_product, reached
from sim.timing.operators import formats_of
from sim.timing.placement import Placement
from sim.timing.rates import ACTIVATION_BYTES, PS, Rates


@dataclass(frozen=True, slots=True)
class Work:
    """One operator at one size."""

    name: str
    flops: float
    moved_bytes: float
    time_ps: float

    @property
    def intensity(self) -> float:
        """FLOP for each byte that is moved."""
        return self.flops / self.moved_bytes

    @property
    def flops_per_s(self) -> float:
        """What it reaches, its fixed time included."""
        return self.flops / self.time_ps * PS


def works_of_prompt(placement: Placement, tokens: int) -> list[Work]:
    """The operators of a prefill of one prompt."""
    return _distinct(_works(placement, tokens, 1, is_decode=False))


def works_of_step(placement: Placement, batch: int, context: int) -> list[Work]:
    """The operators of a decode step of sequences of equal context."""
    return _distinct(_works(placement, batch, context, is_decode=True))


def _distinct(works: Iterator[Work]) -> list[Work]:
    """One of each name, of those that multiply anything."""
    return list({work.name: work for work in works if work.flops}.values())


def _works(placement: Placement, tokens: int, context: int, is_decode: bool) -> Iterator[Work]:
    rates, shard = Rates.of(placement), placement.shard
    for kind, _ in shard.model.groups:
        yield from _products(rates, placement, kind, tokens, is_decode)
        core = cores(rates, shard, kind, 1)
        if core is not None and is_decode:
            yield _looking_back(rates, core, tokens, context)
        elif core is not None:
            yield _attention(rates, core, tokens)
    head = Matrix("LM head", -(-shard.model.vocab // shard.tp), shard.model.hidden)
    yield product_work(rates, head, precision(UNQUANTISED), tokens if is_decode else 1)


def _products(
    rates: Rates, placement: Placement, kind: Layer, tokens: int, is_decode: bool
) -> Iterator[Work]:
    """The products of a layer."""
    tp, formats, mlp = placement.shard.tp, formats_of(placement.shard), kind.mlp
    matrices = [] if kind.attention is None else list(products_of(kind.attention, tp, is_decode))
    if isinstance(mlp, DenseMlp):
        matrices += mlp.matrices(tp)
    if isinstance(mlp, MoeMlp):
        matrices += [mlp.router, *mlp.latent_matrices, *mlp.shared_matrices(tp)]
        for matrix in mlp.expert_matrices(tp):
            yield _experts(rates, mlp, matrix, formats(kind, matrix), tokens)
    for matrix in matrices:
        yield product_work(rates, matrix, formats(kind, matrix), tokens)


def product_work(rates: Rates, matrix: Matrix, weights: Precision, tokens: int) -> Work:
    """A product of so many tokens."""
    rate = rates.products[weights]
    vectors = matrix.count * (matrix.k * rate.input_bytes + matrix.n * ACTIVATION_BYTES)
    moved = matrix.parameters * rate.weight_bytes + tokens * vectors
    time_ps = gemm(rates, matrix, weights)(tokens)
    return Work(_name(matrix), 2.0 * matrix.parameters * tokens, moved, time_ps)


def _experts(rates: Rates, mlp: MoeMlp, matrix: Matrix, weights: Precision, tokens: int) -> Work:
    rate, rows = rates.products[weights], mlp.active * tokens
    numbers = matrix.n * matrix.k
    moved = reached(mlp.experts, mlp.active, tokens) * numbers * rate.weight_bytes
    moved += rows * (matrix.k * rate.input_bytes + matrix.n * ACTIVATION_BYTES)
    time_ps = grouped_product(rates, mlp, matrix, weights)(tokens)
    return Work(_name(matrix), 2.0 * numbers * rows, moved, time_ps)


def _attention(rates: Rates, core: Core, tokens: int) -> Work:
    """Attention itself over one prompt."""
    flops = core.pair_ps / PS * rates.attention_flops * core.reach.doubled_pairs(tokens, 0) / 2
    read_ps = core.kv_ps * core.reach.touched(tokens, 0) + core.query_ps * tokens
    moved = read_ps / PS * rates.attention_bytes
    return Work(_reaching("attention itself", core), flops, moved, core.prefill_ps([(tokens, 0)]))


def _looking_back(rates: Rates, core: Core, batch: int, context: int) -> Work:
    """Attention itself in a decode step."""
    seen = batch * core.reach.seen(context)
    pair_ps = core.step_ps or core.pair_ps
    read_ps = core.step_bytes / rates.attention_bytes * PS
    time_ps = core.kernel_ps + seen * max(read_ps, core.step_ps) + core.sequence_ps * batch
    flops = pair_ps / PS * rates.attention_flops * seen
    states = core.sequence_ps / PS * rates.attention_bytes * batch
    return Work(_reaching("attention itself", core), flops, seen * core.step_bytes + states, time_ps)


def _reaching(name: str, core: Core) -> str:
    """Layers that look back differently are told apart."""
    return name if core.reach.limit is None else f"{name} over {core.reach.limit:,}"


def _name(matrix: Matrix) -> str:
    return f"{matrix.part.replace('_', ' ')} {matrix.n:,} x {matrix.k:,}"
