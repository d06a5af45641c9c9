"""Fitted constants of the mooncake-conversation generator."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ConversationShape:
    """Fitted constants; the fields are explained in tools/fit_mooncake_conversation.py.

    A `*_quantiles` list is an inverse distribution function, linear between the points at `levels`.
    """

    native_rate_per_s: float
    most_input_tokens: int
    least_input_tokens: int
    one_shot_below_tokens: int
    levels: Sequence[float]
    first_input_quantiles: Sequence[float]
    output_quantiles: Sequence[float]
    gap_s_quantiles: Sequence[float]
    gap_s_quantiles_by_class: Sequence[Sequence[float]]
    continued_by_turn: Sequence[float]
    continued_by_class: Sequence[float]
    later_turn_fraction: float
    class_edges_tokens: Sequence[int]
    edit_share_by_class: Sequence[float]
    added_quantiles_by_class: Sequence[Sequence[float]]
    edit_kept_quantiles: Sequence[float]
    edit_ratio_quantiles: Sequence[float]

    @cached_property
    def chances(self) -> Sequence[Sequence[float]]:
        """Chances that a turn is followed by another: by turn (the last for all later ones), by class."""
        return [
            [min(by_turn * by_class, 1.0) for by_class in self.continued_by_class]
            for by_turn in self.continued_by_turn
        ]

    def length_class(self, input_tokens: int) -> int:
        """Return the class of a prompt length."""
        return bisect_right(self.class_edges_tokens, input_tokens)

    def gap_exceeds(self, seconds: Floats) -> Floats:
        """Return the chance that the next turn comes later than this many seconds after the last one."""
        return 1.0 - np.interp(seconds, self.gap_s_quantiles, self.levels)


@cache
def conversation_shape() -> ConversationShape:
    """Load the fitted constants."""
    import yaml  # noqa: PLC0415  only this generator needs it

    text = (files("sim.workload") / "mooncake_conversation.yaml").read_text("utf-8")
    return ConversationShape(**yaml.safe_load(text))
