"""What part of their GPU's nominal rates kernels reach: one set per architecture, none per model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sim.base.errors import UnsupportedError, listed
from sim.base.units import show
from sim.catalog.entry import Entry
from sim.catalog.fields import Fields
from sim.catalog.gpu import TWIN


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Efficiency(Entry):
    """Fractions of nominal rates for an architecture.

    `gemm_compute` is by precision and `attention_compute` by kind of kernel, both of the dense tensor rate
    (attention computes in bf16). The memory fractions are of the nominal memory rate. `kernel_time_ps` is the
    fixed cost of each kernel. `widened` is the part of both GEMM rates that is left where weights of four
    bits are widened before they are multiplied; 1 where no such kernel was measured.
    """

    gemm_compute: Mapping[str, float]
    gemm_memory: float
    attention_compute: Mapping[str, float]
    attention_memory: float
    elementwise_memory: float
    kernel_time_ps: int
    widened: float = 1.0

    @classmethod
    def read(cls, fields: Fields) -> Efficiency:
        """Read an entry of efficiencies.yaml; its name is the architecture's."""
        return cls(
            **fields.identity(),
            gemm_compute=fields.table("gemm_compute", "fraction"),
            gemm_memory=fields.quantity("gemm_memory", "fraction"),
            attention_compute=fields.table("attention_compute", "fraction"),
            attention_memory=fields.quantity("attention_memory", "fraction"),
            elementwise_memory=fields.quantity("elementwise_memory", "fraction"),
            kernel_time_ps=fields.whole_quantity("kernel_time", "time"),
            widened=fields.quantity("widened", "fraction") if fields.has("widened") else 1.0,
        )

    @property
    def summary(self) -> str:
        """Title and the fractions that GEMMs reach."""
        parts = [f"{name.upper()} {show(part, 'fraction')}" for name, part in self.gemm_compute.items()]
        return f"{self.title}, GEMMs reach {', '.join(parts)}, memory {show(self.gemm_memory, 'fraction')}"

    def gemm(self, precision: str) -> float:
        """Return the fraction of the dense rate that large GEMMs of a precision reach."""
        listed_as = precision if precision in self.gemm_compute else TWIN.get(precision, precision)
        return _known(self.gemm_compute, listed_as, f"GEMM efficiency in {precision} on {self.title}")

    def attention(self, kernel: str) -> float:
        """Return the fraction of the dense bf16 rate that causal attention reaches in a kind of kernel."""
        return _known(
            self.attention_compute, kernel, f"efficiency of attention kernel '{kernel}' on {self.title}"
        )


def _known(table: Mapping[str, float], key: str, what: str) -> float:
    if key not in table:
        raise UnsupportedError(f"the catalogue has no {what}", f"it has {listed(list(table))}")
    return table[key]
