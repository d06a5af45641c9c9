"""What can be measured, and in which units: the table behind sim.base.units.

Inner units: time ps (whole), size bytes (whole), rate bytes/s, frequency 1/s, clock Hz, fraction 1,
compute FLOP/s, power W, energy J, length m, price USD/h, count 1. Prefixes are SI (k = 1000) or IEC
(Ki = 1024); b is a bit, B a byte. Ignored: compound units other than those listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

SI = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
IEC = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}
PS_PER_S = 10**12

Units = Mapping[str, Fraction]


@dataclass(frozen=True)
class Dimension:
    """What can be measured in a set of units.

    `units` gives the size of each unit in inner units. Output is written in one of `written`, from large
    to small, or in one of `exactly` where that gives a whole number in fewer digits. `is_whole` says
    that inner values are integers.
    """

    name: str
    meaning: str
    example: str
    units: Units
    written: tuple[str, ...]
    exactly: tuple[str, ...] = ()
    is_whole: bool = False


def prefixed(symbol: str, size: Fraction | int = 1, prefixes: Mapping[str, int] = SI) -> dict[str, Fraction]:
    """A unit under each prefix."""
    return {f"{prefix}{symbol}": Fraction(size) * factor for prefix, factor in prefixes.items()}


def ladder(symbol: str, prefixes: str) -> tuple[str, ...]:
    """A unit under the given prefixes from large to small, then bare."""
    return (*(f"{prefix}{symbol}" for prefix in prefixes), symbol)


def per_time(words: tuple[str, ...]) -> dict[str, Fraction]:
    """Events per second, minute, hour and day."""
    spans = {"s": 1, "min": 60, "h": 3600, "d": 86400}
    return {f"{word}/{span}": Fraction(1, seconds) for word in words for span, seconds in spans.items()}


BIT = Fraction(1, 8)
SIZES = prefixed("B") | prefixed("B", 1, IEC) | prefixed("b", BIT) | prefixed("b", BIT, IEC)
RATES = {f"{unit}/s": size for unit, size in SIZES.items()}
TIMES = {
    unit: Fraction(picoseconds)
    for unit, picoseconds in {
        "ps": 1,
        "ns": 10**3,
        "us": 10**6,
        "µs": 10**6,  # micro sign
        "μs": 10**6,  # Greek mu
        "ms": 10**9,
        "s": PS_PER_S,
        "min": 60 * PS_PER_S,
        "h": 3600 * PS_PER_S,
        "d": 86400 * PS_PER_S,
    }.items()
}
FLOPS = prefixed("FLOPS") | prefixed("FLOP/s") | prefixed("OPS")
POWERS = prefixed("W") | {"mW": Fraction(1, 1000)}
ENERGIES = prefixed("J") | prefixed("Wh", 3600) | {"pJ": Fraction(1, PS_PER_S)}
LENGTHS = {"mm": Fraction(1, 1000), "cm": Fraction(1, 100), "m": Fraction(1), "km": Fraction(1000)}

DIMENSIONS: Mapping[str, Dimension] = MappingProxyType(
    {
        dimension.name: dimension
        for dimension in (
            Dimension("time", "a time", "2 s", TIMES, ("s", "ms", "us", "ns", "ps"), ("h", "min"), True),
            Dimension(
                "size",
                "a size",
                "180 GB",
                SIZES,
                ladder("B", "EPTGMk"),
                ("PiB", "TiB", "GiB", "MiB", "KiB"),
                True,
            ),
            Dimension("rate", "a data rate", "400 Gb/s", RATES, ladder("B/s", "EPTGMk")),
            Dimension("frequency", "a rate", "2000 req/s", per_time(("req", "", "1")), ("req/s",)),
            Dimension("clock", "a clock frequency", "1980 MHz", prefixed("Hz"), ladder("Hz", "TGMk")),
            Dimension("fraction", "a fraction", "95 %", {"%": Fraction(1, 100)}, ("%",)),
            Dimension("compute", "a compute rate", "4500 TFLOPS", FLOPS, ladder("FLOPS", "EPTGMk")),
            Dimension("power", "a power", "700 W", POWERS, ladder("W", "GMk")),
            Dimension("energy", "an energy", "12 J", ENERGIES, ladder("J", "GMk")),
            Dimension("length", "a length", "5 m", LENGTHS, ("m",)),
            Dimension("price", "a price", "3 USD/h", {"USD/h": Fraction(1)}, ("USD/h",)),
            Dimension("count", "a number", "64", {"": Fraction(1)}, ("",)),
        )
    }
)
