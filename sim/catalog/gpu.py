"""A GPU: memory, rates and power as its vendor states them, without what software makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sim.base.errors import UnsupportedError, listed
from sim.base.units import show
from sim.catalog.entry import Entry
from sim.catalog.fields import Fields

TWIN = {"fp16": "bf16"}
"""FP16 runs at the rate of BF16 wherever a GPU has both, so that only GPUs without BF16 list it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Gpu(Entry):
    """A GPU, or an isolated slice of one. Rates are per second; NVLink and PCIe are payload per direction.

    `dense_flops` has a rate for each precision of the tensor cores, without structured sparsity and with
    FP32 accumulation; `sparse_flops` keeps what a datasheet prints with sparsity. `usable_memory_bytes` is
    what the driver reports. `pcie_bytes_per_s` is the way to the host, whatever it is made of; where
    `is_unified` the host has no memory of its own. `slice_of` names the GPU that a slice is part of. The
    price is that of an hour of rent. `idle_w` is drawn with a model loaded and nothing to do, `prefill_w` and
    `decode_w` while prompts are computed and tokens generated without a pause.
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
    is_unified: bool = False
    slice_of: str | None = None
    price_usd_per_h: float | None = None
    idle_w: float | None = None
    prefill_w: float | None = None
    decode_w: float | None = None

    @classmethod
    def read(cls, fields: Fields) -> Gpu:
        """Read an entry of gpus/."""
        return cls(
            **fields.identity(),
            architecture=fields.text("architecture"),
            slice_of=fields.text("slice_of") if fields.has("slice_of") else None,
            memory_bytes=fields.whole_quantity("memory", "size"),
            usable_memory_bytes=fields.whole_quantity("usable_memory", "size"),
            memory_bytes_per_s=fields.quantity("memory_bandwidth", "rate"),
            dense_flops=fields.table("dense", "compute"),
            sparse_flops=fields.table("sparse", "compute") if fields.has("sparse") else {},
            nvlink_bytes_per_s=fields.quantity("nvlink", "rate") if fields.has("nvlink") else None,
            pcie_bytes_per_s=fields.quantity("pcie", "rate"),
            is_unified=fields.flag("unified") if fields.has("unified") else False,
            tdp_w=fields.quantity("tdp", "power"),
            price_usd_per_h=fields.quantity("price", "price") if fields.has("price") else None,
            idle_w=fields.quantity("idle_power", "power") if fields.has("idle_power") else None,
            prefill_w=fields.quantity("prefill_power", "power") if fields.has("prefill_power") else None,
            decode_w=fields.quantity("decode_power", "power") if fields.has("decode_power") else None,
        )

    @property
    def summary(self) -> str:
        """Title, memory rate and the dense rates of floating-point formats."""
        rates = [
            f"{show(rate, 'compute')} {precision.upper()}"
            for precision, rate in self.dense_flops.items()
            if precision.startswith(("fp", "bf"))
        ]
        return f"{self.title}, {show(self.memory_bytes_per_s, 'rate')}, dense {', '.join(rates)}"

    def flops(self, precision: str) -> float:
        """Return the dense rate of the tensor cores in a precision."""
        known = self.dense_flops
        rate = known.get(precision, known.get(TWIN.get(precision, precision)))
        if rate is None:
            has = listed([name.upper() for name in known])
            raise UnsupportedError(f"{self.title} has no {precision.upper()} rate", f"it has {has}")
        return rate
