"""What a user may write of requests that are made: when they come, how long and how urgent they are."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from sim.config.form import Form
from sim.config.quantities import FilePath, Fraction, PerSecond, PositiveDuration


class Arrivals(Form):
    """When requests arrive, for generated workloads."""

    kind: Literal["poisson", "gamma", "diurnal", "ramp", "bursts"] = Field(description="the arrival process")
    rate: PerSecond = Field(
        description="mean rate, such as `2000 req/s`; ramp: the last one; bursts: the one between them"
    )
    cv: Annotated[float, Field(gt=0)] | None = Field(
        None, description="gamma: coefficient of variation of the gaps; above 1 is bursty"
    )
    period: PositiveDuration | None = Field(
        None,
        description="diurnal: length of the cycle, such as `24 h`; ramp: how long the rate rises; bursts: "
        "from one to the next",
    )
    first_rate: PerSecond | None = Field(None, description="ramp: the rate at the start")
    burst_rate: PerSecond | None = Field(None, description="bursts: the rate in a burst")
    burst: PositiveDuration | None = Field(None, description="bursts: how long one lasts")
    peak_to_mean: Annotated[float, Field(ge=1, le=2)] | None = Field(
        None, description="diurnal: peak rate over mean rate (a sine, so at most 2)"
    )


class Lengths(Form):
    """How many tokens, for generated workloads."""

    kind: Literal["fixed", "lognormal", "empirical"] = Field(description="the distribution")
    tokens: PositiveInt | None = Field(None, description="fixed: the number of tokens")
    median_tokens: PositiveInt | None = Field(None, description="lognormal: the median")
    sigma: Annotated[float, Field(gt=0)] | None = Field(None, description="lognormal: sd of the logarithm")
    max_tokens: PositiveInt | None = Field(None, description="lognormal: draws above are cut to this")
    file: FilePath | None = Field(None, description="empirical: a text file with one length a line")


class Cancel(Form):
    """Requests that users take back."""

    share: Fraction = Field(description="how many of all requests, such as `5 %`")
    after: PositiveDuration = Field(
        description="how long after they were sent (the mean of an exponential), unless they are done by then"
    )


class PriorityClass(Form):
    """A part of the requests, and how urgent they are."""

    share: Fraction = Field(description="how many of all requests, such as `20 %`")
    priority: Annotated[int, Field(ge=0, le=1000)] = Field(description="0 is the most urgent")
