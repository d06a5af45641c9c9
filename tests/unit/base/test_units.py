from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.base.dimensions import DIMENSIONS
from sim.base.units import LARGEST, UnitError, Value, parse, show, text

S = 10**12


@pytest.mark.parametrize(
    ("written", "dimension", "value"),
    [
        ("1 ps", "time", 1),
        ("1.2 us", "time", 1_200_000),
        ("1.2us", "time", 1_200_000),
        ("  2   s ", "time", 2 * S),
        ("3 µs", "time", 3_000_000),
        ("3 μs", "time", 3_000_000),
        ("1e3 s", "time", 1000 * S),
        (".5 s", "time", S // 2),
        ("2 min", "time", 120 * S),
        ("24 h", "time", 86_400 * S),
        ("1 d", "time", 86_400 * S),
        ("0.1 s", "time", S // 10),
        ("180 GB", "size", 180 * 10**9),
        ("1 GiB", "size", 2**30),
        ("8 b", "size", 1),
        ("16 Kib", "size", 2048),
        ("400 Gb/s", "rate", 5e10),
        ("50 GB/s", "rate", 5e10),
        ("3.35 TB/s", "rate", 3.35e12),
        ("2000 req/s", "frequency", 2000.0),
        ("120 /min", "frequency", 2.0),
        ("7200 req/h", "frequency", 2.0),
        ("5 1/s", "frequency", None),
        ("1980 MHz", "clock", 1.98e9),
        ("95 %", "fraction", 0.95),
        ("0.1 %", "fraction", 0.001),
        ("4500 TFLOPS", "compute", 4.5e15),
        ("4.5 PFLOP/s", "compute", 4.5e15),
        ("1000 W", "power", 1000.0),
        ("1 kW", "power", 1000.0),
        ("1 kWh", "energy", 3.6e6),
        ("30 m", "length", 30.0),
        ("64", "count", 64.0),
    ],
)
def test_parse(written: str, dimension: str, value: Value | None) -> None:
    if value is None:  # a unit may not start with a digit: it would read as part of the number
        with pytest.raises(UnitError):
            parse(written, dimension)
    else:
        assert parse(written, dimension) == value
        assert isinstance(parse(written, dimension), int if DIMENSIONS[dimension].is_whole else float)


def test_equal_times_are_equal_however_written() -> None:
    assert parse("500 ns", "time") == parse("0.5 us", "time") == parse("5e-7 s", "time")


@pytest.mark.parametrize(
    ("value", "dimension", "written"),
    [
        (0, "time", "0 s"),
        (1_200_000, "time", "1.2 us"),
        (90 * S, "time", "90 s"),
        (600 * S, "time", "10 min"),
        (2 * 3600 * S, "time", "2 h"),
        (S // 1000 + 1, "time", "1.000000001 ms"),
        (-5 * S, "time", "-5 s"),
        (180 * 10**9, "size", "180 GB"),
        (512 * 2**30, "size", "512 GiB"),
        (1024, "size", "1 KiB"),
        (5e10, "rate", "50 GB/s"),
        (1 / 3, "fraction", "33.33333333333333 %"),
        (1000.0, "frequency", "1000 req/s"),
        (1e-9, "frequency", "1e-9 req/s"),
    ],
)
def test_text(value: Value, dimension: str, written: str) -> None:
    assert text(value, dimension) == written


@given(st.sampled_from(sorted(DIMENSIONS)), st.data())
def test_text_parses_to_the_same_value(dimension: str, data: st.DataObject) -> None:
    if DIMENSIONS[dimension].is_whole:
        value: Value = data.draw(st.integers(-LARGEST, LARGEST))
    else:
        value = data.draw(st.floats(-1e29, 1e29))
    again = parse(text(value, dimension), dimension)
    assert again == value
    assert text(again, dimension) == text(value, dimension)


@given(st.text(max_size=100), st.sampled_from(sorted(DIMENSIONS)))
def test_any_text_is_a_quantity_or_an_error_with_a_remedy(written: str, dimension: str) -> None:
    error = None
    try:
        parse(written, dimension)
    except UnitError as caught:
        error = caught
    assert error is None or error.hint


@pytest.mark.parametrize(
    ("value", "dimension", "shown"),
    [
        (412_345_678_900, "time", "412 ms"),
        (1_610 * 10**9, "time", "1.61 s"),
        (8_400 * 10**9, "time", "8.4 s"),
        (125 * S, "time", "125 s"),
        (630 * S, "time", "10.5 min"),
        (3 * 3600 * S, "time", "3 h"),
        (0, "time", "0 s"),
        (float("nan"), "time", "–"),
        (None, "time", "–"),
        (math.inf, "time", "∞ s"),
        (5e10, "rate", "50 GB/s"),
        (0.8349, "fraction", "83.5 %"),
        (0.5, "time", "0.5 ps"),
    ],
)
def test_show(value: Value | None, dimension: str, shown: str) -> None:
    assert show(value, dimension) == shown


def test_show_rounds_up_into_the_next_unit() -> None:
    assert show(999_999 * 10**6, "time") == "1 s"


@pytest.mark.parametrize(
    ("written", "dimension", "problem", "hint"),
    [
        ("400", "rate", "400 has no unit", "add a unit, such as 400 Gb/s"),
        ("0.95", "fraction", "0.95 has no unit", "add a unit, such as 95 %"),
        ("-1", "time", "-1 has no unit", "add a unit, such as 2 s"),
        ("400 Gbps", "rate", "cannot read '400 Gbps' as a data rate", "did you mean 'Gb/s'?"),
        ("400 gb/s", "rate", "cannot read '400 gb/s' as a data rate", "did you mean 'GB/s' or 'Gb/s'?"),
        ("400 Gbit/s", "rate", "cannot read '400 Gbit/s' as a data rate", "did you mean 'Gb/s'?"),
        ("400 GB", "rate", "cannot read '400 GB' as a data rate", "did you mean 'GB/s'?"),
        ("80 GB/s", "size", "cannot read '80 GB/s' as a size", "did you mean 'GB'?"),
        ("80 gigabytes", "size", "cannot read '80 gigabytes' as a size", "did you mean 'GB'?"),
        ("2 m", "time", "cannot read '2 m' as a time", "did you mean 'min' or 'ms'?"),
        ("5 qps", "frequency", "cannot read '5 qps' as a rate", "did you mean 'req/s'?"),
        (
            "5 s",
            "rate",
            "cannot read '5 s' as a data rate",
            "s measures a time; write a data rate such as 400 Gb/s",
        ),
        (
            "2,000 req/s",
            "frequency",
            "cannot read '2,000 req/s' as a rate",
            "write the number without separators: 2000 req/s",
        ),
        (
            "fast",
            "rate",
            "cannot read 'fast' as a data rate",
            "write a number and a unit, such as 400 Gb/s",
        ),
        (
            "0.5 ps",
            "time",
            "'0.5 ps' is not a whole number of ps",
            "round it: a time has no finer step than 1 ps",
        ),
        ("1 b", "size", "'1 b' is not a whole number of B", "round it: a size has no finer step than 1 B"),
        ("1e99 s", "time", "'1e99 s' is out of range", "write a time such as 2 s"),
        ("1e9999 s", "time", "'1e9999 s' is out of range", "write a time such as 2 s"),
    ],
)
def test_errors(written: str, dimension: str, problem: str, hint: str) -> None:
    with pytest.raises(UnitError) as caught:
        parse(written, dimension)
    assert (caught.value.problem, caught.value.hint) == (problem, hint)
