from __future__ import annotations

import pytest

from sim.base.errors import ValueProblem
from sim.config.marks import Scalar
from sim.config.scalars import resolve


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("0", 0),
        ("-7", -7),
        ("+7", 7),
        ("350", 350),
        ("2.5", 2.5),
        ("2.0", 2.0),
        (".5", 0.5),
        ("1e6", 1_000_000),
        ("1.5e3", 1500),
        ("1E6", 1_000_000),
        ("1e-3", 0.001),
        ("1.0e-07", 1e-07),
        ("1e30", 1e30),
    ],
)
def test_what_words_stand_for(word: str, value: Scalar) -> None:
    assert resolve(word) == value
    assert type(resolve(word)) is type(value)


TRAPS = (
    "no",
    "yes",
    "on",
    "off",
    "y",
    "12:30",
    "12:30:45",
    "0x10",
    "0o10",
    "0b1",
    "1_000",
    ".inf",
    "2024-01-01",
)
WORDS = ("", "400 Gb/s", "1.2.3", "e6", "1e", "tRUE", "-", "<<", "=")


@pytest.mark.parametrize("word", TRAPS + WORDS)
def test_what_stays_text(word: str) -> None:
    assert resolve(word) == word


@pytest.mark.parametrize(
    ("word", "number"), [("010", "10"), ("007", "7"), ("00", "0"), ("-010", "-10"), ("08", "8")]
)
def test_a_leading_zero_is_a_mistake(word: str, number: str) -> None:
    with pytest.raises(ValueProblem) as caught:
        resolve(word)
    assert caught.value.hint == f"write {number} for the number, or '{word}' in quotes for text"


@pytest.mark.parametrize("word", ["9" * 41, "1e309", "1e999"])
def test_a_number_beyond_reason_is_a_mistake(word: str) -> None:
    with pytest.raises(ValueProblem, match="out of range"):
        resolve(word)
