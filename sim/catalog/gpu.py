"""A GPU: memory, rates and power as its vendor states them, without what software makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sim.base.errors import UnsupportedError, listed
from sim.base.units import show
from sim.catalog.entry import Entry
from sim.catalog.fields import Fields


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Gpu(Entry):
    """A GPU. Rates are per second; NVLink and PCIe are payload per direction.

    `dense_flops` has a rate for each precision of the tensor cores, without structured sparsity;
    `sparse_flops` keeps what a datasheet prints with it. `usable_memory_bytes` is what the driver reports.
    """

    architecture: str
    memory_bytes: int
    usable_memory_bytes: int
    memory_bytes_per_s: float
    dense_flops: Mapping[str, float]
    sparse_flops: Mapping[str, float]
    nvlink_bytes_per_s: float | None
    pcie_bytes_per_s: float
    tdp_w: float

    @classmethod
    def read(cls, fields: Fields) -> Gpu:
        """Read an entry of gpus.yaml."""
        return cls(
            **fields.identity(),
            architecture=fields.text("architecture"),
            memory_bytes=fields.whole_quantity("memory", "size"),
            usable_memory_bytes=fields.whole_quantity("usable_memory", "size"),
            memory_bytes_per_s=fields.quantity("memory_bandwidth", "rate"),
            dense_flops=fields.table("dense", "compute"),
            sparse_flops=fields.table("sparse", "compute") if fields.has("sparse") else {},
            nvlink_bytes_per_s=fields.quantity("nvlink", "rate") if fields.has("nvlink") else None,
            pcie_bytes_per_s=fields.quantity("pcie", "rate"),
            tdp_w=fields.quantity("tdp", "power"),
        )

    @property
    def summary(self) -> str:
        """Title, memory rate and the fastest dense rates."""
        rates = [
            f"{show(rate, 'compute')} {precision.upper()}" for precision, rate in self.dense_flops.items()
        ]
        return f"{self.title}, {show(self.memory_bytes_per_s, 'rate')}, dense {', '.join(rates)}"

    def flops(self, precision: str) -> float:
        """Return the dense rate of the tensor cores in a precision."""
        if precision not in self.dense_flops:
            has = listed([known.upper() for known in self.dense_flops])
            raise UnsupportedError(f"{self.title} has no {precision.upper()} rate", f"it has {has}")
        return self.dense_flops[precision]
