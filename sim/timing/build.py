"""The one place where a placement becomes a timing provider."""

from __future__ import annotations

from sim.timing.placement import Placement
from sim.timing.roofline import Roofline
from sim.timing.timing import Timing


def roofline(placement: Placement) -> Timing:
    """Make times from a roofline of the model's operators."""
    return Roofline(placement)
