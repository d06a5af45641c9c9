"""What an unquoted word in YAML stands for; stricter than YAML 1.1, to mean what it looks like.

`true` and `false` are the only booleans, so `no`, `on` and `off` are text. Decimal numbers are numbers,
`1e6` included; what only looks like one (`12:30`, `0x10`, `1_000`) is text, and becomes an error where a
number is wanted. A leading zero (`010`) is an error anywhere, since people read 10 and YAML 1.1 reads 8.
"""

from __future__ import annotations

import re
from decimal import Decimal

from sim.base.errors import ValueProblem
from sim.config.marks import Scalar

NULLS = frozenset({"null", "Null", "NULL", "~"})
BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,3})?")
OCTAL = re.compile(r"[-+]?0[0-9]+")
LONGEST_NUMBER = 40
LARGEST_WHOLE = 10**18


def resolve(text: str) -> Scalar:
    """The value of an unquoted scalar."""
    if text in NULLS:
        return None
    if text in BOOLEANS:
        return BOOLEANS[text]
    if OCTAL.fullmatch(text):
        raise ValueProblem(
            f"{text} starts with a zero, which some read as octal",
            f"write {int(text)} for the number, or '{text}' in quotes for text",
        )
    if not NUMBER.fullmatch(text):
        return text
    return number(text)


def number(text: str) -> int | float:
    """The value of a number; whole without a point, or with an exponent that takes it away."""
    if len(text) > LONGEST_NUMBER or abs(Decimal(text)) > 10**308:
        raise ValueProblem("the number is out of range", "write fewer digits, or put it in quotes for text")
    if WHOLE.fullmatch(text):
        return int(text)
    value = Decimal(text)
    if "e" in text.lower() and abs(value) <= LARGEST_WHOLE and value == value.to_integral_value():
        return int(value)
    return float(value)
