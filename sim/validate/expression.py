"""What an expression makes of a published number."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prediction:
    """A value in the unit of the entry, what it is about, and whether the model was fitted to this entry."""

    value: float
    group: str
    fitted: bool = False
