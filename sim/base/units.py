"""Quantities with units: text such as `400 Gb/s` to one inner unit per dimension, and back.

The dimensions and their inner units are in sim.base.dimensions. All arithmetic is rational, so equal
quantities give equal values however they are written, and parse(text(v, d), d) == v. Ignored: any
way of writing numbers but digits with a decimal point and an exponent.
"""

from __future__ import annotations

import math
import re
from decimal import Context, Decimal
from fractions import Fraction
from typing import Literal, overload

from sim.base.dimensions import DIMENSIONS, Dimension
from sim.base.errors import ValueProblem, listed, suggest

Value = int | float

LARGEST = 10**30  # far above any quantity of a cluster in inner units
LARGEST_EXPONENT = 400  # decimal exponents that a float can have; more would only cost memory
LONGEST_TEXT = 80
EXACT = Context(prec=1000)
QUANTITY = re.compile(
    r"\s*(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,4})?)(?P<space>\s*)(?P<unit>\S.*)?"
)
GROUPED = re.compile(r"[+-]?\d{1,3}(?:[,_' ]\d{3})+(?!\d)")
SPELLED = {
    "sec": "s",
    "secs": "s",
    "second": "s",
    "seconds": "s",
    "msec": "ms",
    "millisecond": "ms",
    "milliseconds": "ms",
    "usec": "us",
    "microsecond": "us",
    "microseconds": "us",
    "nsec": "ns",
    "nanosecond": "ns",
    "nanoseconds": "ns",
    "mins": "min",
    "minute": "min",
    "minutes": "min",
    "hr": "h",
    "hrs": "h",
    "hour": "h",
    "hours": "h",
    "day": "d",
    "days": "d",
    "bytes": "B",
    "byte": "B",
    "bits": "b",
    "bit": "b",
    "kilobytes": "kB",
    "megabytes": "MB",
    "gigabytes": "GB",
    "terabytes": "TB",
    "percent": "%",
    "rps": "req/s",
    "qps": "req/s",
    "hz": "req/s",
    "requests/s": "req/s",
    "flops/s": "FLOPS",
    "watt": "W",
    "watts": "W",
}


class UnitError(ValueProblem):
    """A text that is not a quantity of the wanted dimension; says what would be."""


@overload
def parse(text: str, dimension: Literal["time", "size"]) -> int: ...
@overload
def parse(
    text: str,
    dimension: Literal[
        "rate", "frequency", "clock", "fraction", "compute", "power", "energy", "length", "price", "count"
    ],
) -> float: ...
@overload
def parse(text: str, dimension: str) -> Value: ...
def parse(text: str, dimension: str) -> Value:
    """The inner value of a quantity, such as `parse("1.2 us", "time") == 1_200_000`."""
    wanted = DIMENSIONS[dimension]
    number, unit = split(text, wanted)
    if unit not in wanted.units:
        raise unknown_unit(text, number, unit, wanted)
    value = number * wanted.units[unit]
    if abs(value) > LARGEST:
        raise UnitError(
            f"'{shortened(text)}' is out of range", f"write {wanted.meaning} such as {wanted.example}"
        )
    if not wanted.is_whole:
        return float(value)
    if value.denominator != 1:
        smallest = min(wanted.units, key=lambda name: (abs(wanted.units[name] - 1), name))
        raise UnitError(
            f"'{text}' is not a whole number of {smallest}",
            f"round it: {wanted.meaning} has no finer step than 1 {smallest}",
        )
    return value.numerator


def split(text: str, wanted: Dimension) -> tuple[Fraction, str]:
    """The number and the unit of a quantity."""
    found = QUANTITY.fullmatch(text) if len(text) <= LONGEST_TEXT else None
    if found is None or (found["unit"] or "")[:1].isdigit() or GROUPED.match(text):
        raise unreadable(text, wanted)
    unit = (found["unit"] or "").rstrip()
    number = Decimal(found["number"])
    if number and abs(number.adjusted()) > LARGEST_EXPONENT:
        raise UnitError(f"'{text}' is out of range", f"write {wanted.meaning} such as {wanted.example}")
    return Fraction(number), unit


def unreadable(text: str, wanted: Dimension) -> UnitError:
    """What to say about a text that does not start with a number."""
    grouped = GROUPED.match(text)
    hint = f"write a number and a unit, such as {wanted.example}"
    if grouped:
        digits = re.sub(r"[,_' ]", "", grouped[0])
        hint = f"write the number without separators: {digits}{text[grouped.end() :]}"
    return UnitError(f"cannot read '{shortened(text)}' as {wanted.meaning}", hint)


def unknown_unit(text: str, number: Fraction, unit: str, wanted: Dimension) -> UnitError:
    """What to say about a number whose unit is absent or not of the dimension."""
    example_unit = wanted.example.partition(" ")[2]
    if not unit:
        if wanted.name == "fraction" and abs(number) <= 1:
            number *= 100
        sample = f"{decimal_text(number)} {example_unit}" if number > 0 else wanted.example
        return UnitError(f"{text.strip()} has no unit", f"add a unit, such as {sample}")
    near = similar_units(unit, wanted)
    hint = f"did you mean {listed([repr(name) for name in near], 'or')}?" if near else None
    for other in DIMENSIONS.values():
        if hint is None and unit in other.units:
            hint = f"{unit} measures {other.meaning}; write {wanted.meaning} such as {wanted.example}"
    return UnitError(
        f"cannot read '{shortened(text)}' as {wanted.meaning}",
        hint or f"write {wanted.meaning} such as {wanted.example}",
    )


def similar_units(unit: str, wanted: Dimension) -> list[str]:
    """The units that a misspelt one may stand for: several where case decides between bit and byte."""
    spelled = SPELLED.get(unit.casefold())
    slashed = re.sub(r"/sec(ond)?$|ps$", "/s", unit)
    plain = re.sub(
        r"b(?:its?|ytes?)?(?=/s$|$)",
        lambda found: "B" if "y" in found[0] else found[0][0],
        slashed,
        flags=re.I,
    )
    for meant in (spelled, plain, f"{unit}/s", unit.removesuffix("/s")):
        if meant is not None and meant in wanted.units:
            return [meant]
    folded = [name for name in wanted.units if name.casefold() == plain.casefold()]
    if folded:
        return folded
    if unit == "m" and wanted.name == "time":
        return ["min", "ms"]
    if any(unit in other.units for other in DIMENSIONS.values()):
        return []
    near = suggest(plain, [name for name in wanted.units if len(name) > 1])
    return [near] if near else []


def shortened(text: str) -> str:
    """A text that fits on a line."""
    return text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + "..."


def text(value: Value, dimension: str) -> str:
    """The canonical text of an inner value, exact: `text(1_200_000, "time") == "1.2 us"`."""
    known = DIMENSIONS[dimension]
    exact = Fraction(Decimal(repr(value)) if isinstance(value, float) else value)
    if not exact:
        return written(exact, known.written[0], known)
    candidates = [written(exact, fitting(exact, known), known)]
    for unit in known.exactly:
        if (exact / known.units[unit]).denominator == 1:
            candidates.append(written(exact, unit, known))
            break
    plain, *whole = candidates
    if whole and (known.name == "time" or len(whole[0]) < len(plain)):
        return whole[0]
    return plain


def fitting(value: Fraction, known: Dimension) -> str:
    """The largest written unit in which the value is at least 1, else the smallest."""
    return next((unit for unit in known.written if abs(value) >= known.units[unit]), known.written[-1])


def written(value: Fraction, unit: str, known: Dimension) -> str:
    """A value in a given unit."""
    return f"{decimal_text(value / known.units[unit])} {unit}".rstrip()


def decimal_text(number: Fraction) -> str:
    """A fraction in decimal digits; exact where its denominator has no factors but 2 and 5."""
    power = 0
    while number.denominator != 1 and power < LARGEST_EXPONENT:
        number *= 10
        power += 1
    digits = Decimal(round(number)).scaleb(-power, context=EXACT)
    if digits and not -7 <= digits.adjusted() <= 17:
        digits = digits.normalize(EXACT)
        return f"{digits:E}".replace("E+", "e").replace("E", "e")
    return f"{digits:f}"


def show(value: Value | None, dimension: str, digits: int = 3) -> str:
    """An inner value for people: three significant digits and a unit that fits; a dash for "not yet"."""
    known = DIMENSIONS[dimension]
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return f"{'-' if value < 0 else ''}∞ {known.written[0]}".rstrip()
    exact = Fraction(value)
    unit = shown_unit(round(exact, places(value, digits)), known)
    amount = float(exact / known.units[unit])
    return f"{rounded(amount, digits)} {unit}".rstrip()


def shown_unit(value: Fraction, known: Dimension) -> str:
    """The unit for people: long times in minutes from ten of them, in hours from two."""
    if known.name == "time" and abs(value) >= 10 * known.units["min"]:
        return "h" if abs(value) >= 2 * known.units["h"] else "min"
    return fitting(value, known) if value else known.written[0]


def rounded(amount: float, digits: int) -> str:
    """A number to so many significant digits, without an exponent and without trailing zeros."""
    after_point = places(amount, digits)
    text = f"{round(amount, after_point):.{max(after_point, 0)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def places(amount: Value, digits: int) -> int:
    """How many digits after the point make so many significant ones; negative for large amounts."""
    return digits - 1 - math.floor(math.log10(abs(amount))) if amount else 0
