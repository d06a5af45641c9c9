"""Number formats of weights and KV cache: bits of a number in memory, and what tensor cores compute in.

Bits include block scales where a format has them: NVFP4 one 8-bit scale for 16 numbers, MXFP4 one for 32,
INT4 one 16-bit scale for 32. Scales of FP8 (one for 128 x 128 numbers, or for a tensor) are left out: less
than 0.1 %. MXFP4 and INT4 are storage: kernels widen them and compute in a 16-bit format, but for what
sim.timing.rates says of MXFP4. Sources: NVIDIA, "Introducing NVFP4" (2025); OCP, Microscaling Formats 1.0
(2023); compressed-tensors, formats.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from sim.base.errors import UnknownNameError

NATIVE = "native"
"""In place of a format: whatever the checkpoint was published in."""


@dataclass(frozen=True, slots=True)
class Precision:
    """A format: bits of a number, and whether tensor cores compute in it or in a 16-bit format (`half`)."""

    bits: Fraction
    compute: str

    @property
    def is_storage_only(self) -> bool:
        """Whether numbers are widened before they are multiplied."""
        return self.compute == HALF and self.bits < 16

    def size_bytes(self, numbers: int) -> int:
        """Bytes that so many numbers take."""
        return -(-numbers * self.bits.numerator // (8 * self.bits.denominator))


HALF = "half"
HALVES = ("bf16", "fp16")
PRECISIONS: Mapping[str, Precision] = {
    "bf16": Precision(Fraction(16), HALF),
    "fp16": Precision(Fraction(16), HALF),
    "fp8": Precision(Fraction(8), "fp8"),
    "fp4": Precision(Fraction(9, 2), "fp4"),
    "mxfp4": Precision(Fraction(17, 4), HALF),
    "int4": Precision(Fraction(9, 2), HALF),
}
KV_PRECISIONS = ("bf16", "fp16", "fp8")
UNQUANTISED = "bf16"
UNQUANTISED_BYTES = 2  # embeddings, LM head, routers and norms stay in bf16 in quantised checkpoints


def precision(name: str) -> Precision:
    """The format of a name."""
    if name not in PRECISIONS:
        raise UnknownNameError("precision", name, PRECISIONS)
    return PRECISIONS[name]


def kv_number_bytes(name: str) -> int:
    """Bytes of one number of a KV cache."""
    if name not in KV_PRECISIONS:
        raise UnknownNameError("precision", name, KV_PRECISIONS)
    return precision(name).size_bytes(1)
