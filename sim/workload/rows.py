"""One line of a trace as a reader saw it, and how its numbers are read exactly.

Instants become integer picoseconds by decimal arithmetic, so equal texts are equal instants and no
digit of a file is lost to binary fractions (digits beyond the picosecond are rounded half to even).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from sim.base.errors import ValueProblem

PS_PER_S = 10**12
PS_PER_MS = 10**9
SIGN = 2**63
MOST_TOKENS = 2**31
MEND = "mend the row, or set workload.on_bad_row: skip"
LARGEST_EXPONENT = 30  # of decimal numbers; far above any instant, far below what would cost memory


class Row(NamedTuple):
    """A usable line. `at_ps` counts from whatever the trace counts from; `hash_ids` is None if not given."""

    line: int
    at_ps: int
    input_tokens: int
    output_tokens: int
    hash_ids: Sequence[int] | None = None
    extra: tuple[str, ...] = ()


class BadRow(NamedTuple):
    """A line that cannot be used, in its place in the file."""

    line: int
    problem: str
    hint: str


def required(fields: Mapping[str, Any], key: str) -> Any:
    """Return the value of a key that each row must have."""
    try:
        return fields[key]
    except KeyError:
        raise ValueProblem(
            f"no '{key}' in this row", f"add '{key}', or set workload.on_bad_row: skip"
        ) from None


def tokens(value: Any, key: str) -> int:
    """Read a token count: a whole number of at least 1, as JSON number or as text."""
    if type(value) is not int:
        number = _decimal(value, key)
        if number != number.to_integral_value():
            raise ValueProblem(f"{key} is {value}, not a whole number", "token counts are whole numbers")
        value = int(number)
    if value < 1:
        raise ValueProblem(f"{key} is {value}; it must be at least 1", MEND)
    if value > MOST_TOKENS:
        raise ValueProblem(f"{key} is {value}; no prompt is that long", MEND)
    return int(value)


def instant_ps(value: Any, key: str, unit_ps: int) -> int:
    """Read an instant counted from the start of the trace in units of `unit_ps` picoseconds."""
    at_ps = (
        value * unit_ps if type(value) is int else int((_decimal(value, key) * unit_ps).to_integral_value())
    )
    if at_ps < 0:
        raise ValueProblem(
            f"{key} is {value}; it must not be negative", "count time from the start of the trace"
        )
    return int(at_ps)


def hash_ids(value: Any, key: str) -> Sequence[int] | None:
    """Read the block ids of a prompt: a list of whole numbers, or null where nothing is known.

    Ids are names of 64 bits; those of unsigned hashes are kept as the signed numbers of the same bits.
    """
    if value is None:
        return None
    if not isinstance(value, list) or not set(map(type, value)) <= {int}:
        raise ValueProblem(
            f"{key} is not a list of whole numbers", f"write {key} as [0, 17, 18], or leave it out"
        )
    if value and not -SIGN <= min(value) <= max(value) < 2 * SIGN:
        raise ValueProblem(
            f"{key} has an id of more than 64 bits", "renumber the ids, or cut them to 64 bits"
        )
    if value and max(value) >= SIGN:
        return [id - 2 * SIGN if id >= SIGN else id for id in value]
    return value


def _decimal(value: Any, key: str) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | Decimal | str) or value == "":
        shown = "empty" if value in ("", None) else f"{value!r}"
        raise ValueProblem(f"{key} is {shown}, not a number", MEND)
    try:
        number = Decimal(value)
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or number.adjusted() > LARGEST_EXPONENT:
        raise ValueProblem(f"{key} is {value}, not a number", MEND)
    return number
