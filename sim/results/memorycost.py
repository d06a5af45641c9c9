"""What memory costs that is bought for the pool: its price, written off over the years that it is used.

Units: USD per gigabyte (10^9 bytes), years, bytes.
Ignores: interest, power, and that large modules cost more for a gigabyte than small ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from sim.results.ratios import ratio

HOURS_PER_YEAR = 8766
GB = 10**9


@dataclass(frozen=True, slots=True)
class MemoryPrice:
    """What a gigabyte of host memory costs once, and how many years it lasts."""

    usd_per_gb: float
    years: float

    def usd_per_h(self, size_bytes: float) -> float:
        """What so much memory costs in an hour."""
        return self.usd_per_gb * size_bytes / GB / (self.years * HOURS_PER_YEAR)


def usd_per_million(usd_per_h: float | None, tokens_per_s: float) -> float | None:
    """What a million tokens cost; None where there are none, or what is paid is not known."""
    return None if usd_per_h is None else ratio(usd_per_h / 3600 * 1e6, tokens_per_s)
