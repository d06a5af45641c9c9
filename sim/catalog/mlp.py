"""Kinds of MLP: dense, and mixtures of experts (MoE) with or without shared experts.

A gated MLP (Shazeer, "GLU variants", 2020) has three matrices, a plain one two. Of the experts of a mixture
(Shazeer et al., 2017; shared experts: DeepSeekMoE, 2024) `active` work on a token, the shared ones on all.
Tensor parallelism splits every expert. Sizes are those of one layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from sim.catalog.matrix import ROUTER, Matrix, share


class Mlp(Protocol):
    """What the rest of the catalogue asks of an MLP."""

    @property
    def label(self) -> str:
        """The kind for people."""
        ...

    @property
    def widths(self) -> tuple[int, ...]:
        """Widths that are split over GPUs."""
        ...

    @property
    def small_parameters(self) -> int:
        """Parameters outside of matrices, whole on every GPU."""
        ...

    @property
    def idle_parameters(self) -> int:
        """Parameters of the experts that do not work on a token."""
        ...

    def matrices(self, tp: int) -> tuple[Matrix, ...]:
        """The weights on each of `tp` GPUs."""
        ...


@dataclass(frozen=True, slots=True)
class DenseMlp:
    """One MLP for all tokens."""

    hidden: int
    inner: int
    is_gated: bool = True
    small_parameters: int = 0

    @property
    def label(self) -> str:
        """The width."""
        return f"MLP {self.inner}"

    @property
    def widths(self) -> tuple[int, ...]:
        """One."""
        return (self.inner,)

    @property
    def idle_parameters(self) -> int:
        """None."""
        return 0

    def matrices(self, tp: int) -> tuple[Matrix, ...]:
        """Gate and up in one product, then down."""
        return up_and_down("mlp", self.hidden, share(self.inner, tp), self.is_gated)


@dataclass(frozen=True, slots=True)
class MoeMlp:
    """Experts of width `inner`. `shared_inner` is the joint width of the shared experts, 0 for none.

    With `latent` the routed experts work on a vector of that size, made by a product before and one after.
    `has_shared_gate` weighs the shared experts by one more product with a single output. `has_biases` is
    about the experts; `other_small` are parameters outside of matrices besides those biases.
    """

    hidden: int
    experts: int
    active: int
    inner: int
    shared_inner: int = 0
    is_gated: bool = True
    has_shared_gate: bool = False
    latent: int | None = None
    has_biases: bool = False
    other_small: int = 0

    @property
    def label(self) -> str:
        """Experts and widths."""
        shared = f" + shared {self.shared_inner}" if self.shared_inner else ""
        return f"{self.active} of {self.experts} experts of {self.inner}{shared}"

    @property
    def widths(self) -> tuple[int, ...]:
        """That of an expert, and that of the shared ones."""
        return (self.inner, self.shared_inner) if self.shared_inner else (self.inner,)

    @property
    def expert_hidden(self) -> int:
        """Size of the vectors that experts work on."""
        return self.latent or self.hidden

    @property
    def idle_parameters(self) -> int:
        """Those of the experts that a token does not reach."""
        of_experts = sum(matrix.parameters for matrix in self.expert_matrices(1)) + self._biases
        return of_experts // self.experts * (self.experts - self.active)

    @property
    def small_parameters(self) -> int:
        """Biases of the experts, and the rest."""
        return self._biases + self.other_small

    @property
    def _biases(self) -> int:
        return sum(matrix.n * matrix.count for matrix in self.expert_matrices(1)) if self.has_biases else 0

    def expert_matrices(self, tp: int) -> tuple[Matrix, ...]:
        """Gate and up, and down, of all experts."""
        return up_and_down("experts", self.expert_hidden, share(self.inner, tp), self.is_gated, self.experts)

    def shared_matrices(self, tp: int) -> tuple[Matrix, ...]:
        """Those of the shared experts."""
        if not self.shared_inner:
            return ()
        return up_and_down("shared_experts", self.hidden, share(self.shared_inner, tp), self.is_gated)

    @property
    def router(self) -> Matrix:
        """Scores of the experts, and of the shared ones where they have a gate."""
        return Matrix(ROUTER, self.experts + self.has_shared_gate, self.hidden)

    @property
    def latent_matrices(self) -> tuple[Matrix, ...]:
        """What makes the vector that experts work on, and what turns theirs back; whole on every GPU."""
        if self.latent is None:
            return ()
        return (
            Matrix("shared_experts", self.latent, self.hidden),
            Matrix("shared_experts", self.hidden, self.latent),
        )

    def matrices(self, tp: int) -> tuple[Matrix, ...]:
        """All of the above."""
        return (
            self.router,
            *self.latent_matrices,
            *self.expert_matrices(tp),
            *self.shared_matrices(tp),
        )


def up_and_down(part: str, hidden: int, inner: int, is_gated: bool, count: int = 1) -> tuple[Matrix, Matrix]:
    """The two products of an MLP."""
    return (
        Matrix(part, (2 if is_gated else 1) * inner, hidden, count),
        Matrix(part, hidden, inner, count),
    )
