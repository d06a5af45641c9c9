"""The form of speculative decoding: what is guessed before a step, how often it is right, what it costs."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from sim.base.errors import ValueProblem
from sim.config.form import Form
from sim.config.quantities import Fraction

MOST_DRAFTS = 16


class Speculative(Form):
    """Drafts that decode steps verify, such as those of EAGLE or MTP heads."""

    draft_tokens: Annotated[int, Field(ge=1, le=MOST_DRAFTS)] = Field(
        description="tokens that are guessed for each sequence before a step"
    )
    acceptance: list[Fraction] = Field(
        description="how often each draft token is right if those before it were, such as "
        "`[80 %, 70 %, 60 %]`; one alone, `[70 %]`, is for all"
    )
    draft_cost: Fraction = Field(
        description="what guessing one token takes, as a share of a plain decode step, such as `5 %`"
    )

    @model_validator(mode="after")
    def _one_for_each(self) -> Self:
        if len(self.acceptance) not in (1, self.draft_tokens):
            raise ValueProblem(
                f"{len(self.acceptance)} probabilities for {self.draft_tokens} draft tokens",
                "write one for each, or one alone for all",
                ["acceptance"],
            )
        return self

    @property
    def chances(self) -> tuple[float, ...]:
        """The probability of each draft token."""
        each = self.acceptance
        return tuple(each) if len(each) == self.draft_tokens else tuple(each * self.draft_tokens)
