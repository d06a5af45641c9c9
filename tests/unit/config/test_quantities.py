from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sim.config.form import Form
from sim.config.quantities import (
    BytesPerSecond,
    ComputeRate,
    Duration,
    Fraction,
    PerSecond,
    PositiveDuration,
    PositiveFraction,
    Power,
    Size,
    as_written,
)


class Part(Form):
    """One of each."""

    lasts: Duration = as_written("2 min")
    every: PositiveDuration = as_written("1 s")
    memory: Size = as_written("180 GB")
    link: BytesPerSecond = as_written("400 Gb/s")
    rate: PerSecond = as_written("120 req/min")
    reach: Fraction = as_written("0 %")
    share: PositiveFraction = as_written("95 %")
    draw: Power = as_written("1000 W")
    peak: ComputeRate = as_written("4500 TFLOPS")


def test_defaults_become_values() -> None:
    assert Part().model_dump(mode="python") == {
        "lasts": "2 min",
        "every": "1 s",
        "memory": "180 GB",
        "link": "50 GB/s",
        "rate": "2 req/s",
        "reach": "0 %",
        "share": "95 %",
        "draw": "1 kW",
        "peak": "4.5 PFLOPS",
    }
    part = Part()
    assert (part.lasts, part.memory, part.link, part.rate) == (120 * 10**12, 180 * 10**9, 5e10, 2.0)
    assert (part.reach, part.share, part.draw, part.peak) == (0.0, 0.95, 1000.0, 4.5e15)


@given(
    lasts=st.integers(0, 8 * 10**18),
    memory=st.integers(0, 10**18),
    link=st.floats(1e-3, 1e18),
    share=st.floats(1e-6, 1),
)
def test_what_is_written_is_read_back(lasts: int, memory: int, link: float, share: float) -> None:
    part = Part.model_construct(
        **{**Part().__dict__, "lasts": lasts, "memory": memory, "link": link, "share": share}
    )
    assert Part.model_validate(part.model_dump()) == part


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("lasts", "-1 s", "'-1 s' is too small; write a time of at least 0 s, such as 2 s"),
        ("every", "0 s", "'0 s' is too small; write a time above 0 s, such as 2 s"),
        ("lasts", "101 d", "'101 d' is too large; write at most 2400 h"),
        ("share", "101 %", "'101 %' is too large; write at most 100 %"),
        ("share", "0 %", "'0 %' is too small; write a fraction above 0 %, such as 95 %"),
        ("memory", 5, "5 has no unit; add a unit, such as 5 GB"),
        ("memory", True, "must be a size, not true; write a number and a unit, such as 180 GB"),
        ("memory", None, "must be a size, not null; write a number and a unit, such as 180 GB"),
        ("rate", 0.5, "0.5 has no unit; add a unit, such as 0.5 req/s"),
    ],
)
def test_bounds_and_kinds(key: str, value: object, message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Part.model_validate({key: value})
    (error,) = caught.value.errors()
    assert str(error["ctx"]["error"]) == message
