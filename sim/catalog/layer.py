"""A layer of a model: attention, then an MLP; hybrids have layers with only one of the two.

A model is a stack of layers in order. Equal layers form a group; all sums over a stack go over its groups.
"""

from __future__ import annotations

from dataclasses import dataclass

from sim.catalog.attention import Attention
from sim.catalog.matrix import ROUTER, Matrix
from sim.catalog.mlp import Mlp


@dataclass(frozen=True, slots=True)
class Layer:
    """`norms` are parameters of its norms; `kept` the parts that a quantised checkpoint leaves alone."""

    attention: Attention | None
    mlp: Mlp | None
    norms: int
    kept: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What it is made of, for people."""
        return ", ".join(part.label for part in (self.attention, self.mlp) if part is not None) or "empty"

    def matrices(self, tp: int) -> tuple[Matrix, ...]:
        """The weights on each of `tp` GPUs."""
        return tuple(
            matrix for part in (self.attention, self.mlp) if part is not None for matrix in part.matrices(tp)
        )

    def is_quantised(self, matrix: Matrix) -> bool:
        """Whether a matrix takes the precision of the weights."""
        return matrix.part != ROUTER and matrix.part not in self.kept

    @property
    def small_parameters(self) -> int:
        """Parameters outside of matrices."""
        parts = (self.attention, self.mlp)
        return self.norms + sum(part.small_parameters for part in parts if part is not None)

    @property
    def parameters(self) -> int:
        """All parameters."""
        return sum(matrix.parameters for matrix in self.matrices(1)) + self.small_parameters

    @property
    def idle_parameters(self) -> int:
        """Parameters that do not work on a token."""
        return self.mlp.idle_parameters if self.mlp is not None else 0

    def kv_bytes(self, number_bytes: int, tp: int) -> int:
        """Bytes kept of a token within reach on each of `tp` GPUs."""
        if self.attention is None:
            return 0
        return self.attention.kv_numbers(tp) * number_bytes + self.attention.kv_other_bytes

    def state_bytes(self, tp: int) -> int:
        """Bytes kept of a sequence on each of `tp` GPUs, however long it is."""
        return self.attention.state_bytes(tp) if self.attention is not None else 0
