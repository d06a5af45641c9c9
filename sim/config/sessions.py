"""What a user may write of sessions: users who wait for an answer before they ask again."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, PositiveInt, model_validator

from sim.base.errors import ValueProblem
from sim.config.arrivals import Arrivals, Lengths
from sim.config.form import Form
from sim.config.quantities import Duration, TraceSource, as_written


class Sessions(Form):
    """Sessions of several turns, generated or recorded; a turn is sent when the one before has ended."""

    trace: TraceSource | None = Field(None, description="recorded sessions: a file, or a known name")
    format: str = Field("auto", description="format of the trace: weka, turns, or auto")
    users: PositiveInt | None = Field(
        None, description="so many sessions in flight: the next begins when one ends"
    )
    arrivals: Arrivals | None = Field(None, description="sessions begin by themselves, at this rate")
    ramp_up: Duration = Field(as_written("0 s"), description="users: they come evenly over this time")
    turns: PositiveInt | None = Field(None, description="generated: turns of each session")
    mean_turns: Annotated[float, Field(ge=1)] | None = Field(
        None, description="generated: turns of a session on average, geometrically distributed"
    )
    system_tokens: Annotated[int, Field(ge=0)] = Field(
        0, description="generated: first tokens that all sessions share (a system prompt)"
    )
    input: Lengths | None = Field(None, description="generated: new prompt tokens of each turn")
    output: Lengths | None = Field(None, description="generated: output tokens of each turn")
    think: Duration | None = Field(
        None,
        description="time between an answer and the next turn; generated: the mean of an exponential, 0 s if "
        "absent; trace: in place of what was recorded",
    )
    max_think: Duration | None = Field(None, description="trace: recorded think times are cut to this")

    @model_validator(mode="after")
    def _fit_together(self) -> Sessions:
        if self.users is not None and self.arrivals is not None:
            raise ValueProblem("users and arrivals exclude each other", "keep one of them", ["users"])
        if self.trace is None:
            self._check_generated()
        else:
            self._check_recorded()
        return self

    def _check_generated(self) -> None:
        if self.users is None and self.arrivals is None:
            raise ValueProblem("says nobody who asks", "write users: 64, or arrivals: {...}")
        if (self.turns is None) == (self.mean_turns is None):
            raise ValueProblem("needs either turns or mean_turns", "write turns: 8", ["mean_turns", "turns"])
        for key in ("input", "output"):
            if getattr(self, key) is None:
                raise ValueProblem(f"generated sessions need {key}", f"{key}: {{kind: fixed, tokens: 500}}")
        if self.max_think is not None:
            raise ValueProblem("max_think is for recorded sessions", "remove it", ["max_think"])

    def _check_recorded(self) -> None:
        for key in ("turns", "mean_turns", "input", "output"):
            if getattr(self, key) is not None:
                raise ValueProblem(f"{key} is in the trace", f"remove {key}, or the trace", [key])
