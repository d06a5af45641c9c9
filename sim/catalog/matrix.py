"""A weight matrix as one GPU of a replica holds it, and the part of a layer that it belongs to.

Parts are what checkpoints quantise or leave alone as a whole. Splitting by tensor parallelism follows Shoeybi
et al., "Megatron-LM" (2019): what makes heads or MLP columns is split by outputs, what joins them again by
inputs.
"""

from __future__ import annotations

from dataclasses import dataclass

PARTS = ("attention", "attention_output", "mlp", "experts", "shared_experts")
"""What may be quantised; `attention` is everything in it before its output projection."""

ROUTER = "router"
"""Never quantised: its choice of experts is too sensitive, and it is small."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """`count` matrices of n outputs and k inputs."""

    part: str
    n: int
    k: int
    count: int = 1

    @property
    def parameters(self) -> int:
        """Numbers in it."""
        return self.n * self.k * self.count


def share(whole: int, tp: int) -> int:
    """The largest share of so many things dealt out over the GPUs of a replica."""
    return -(-whole // tp)
