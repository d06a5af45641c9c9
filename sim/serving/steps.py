"""Decode steps of which each lasts as much longer than the one before: how long, and how many until when.

Model: n steps last n * first + growth * n * (n - 1) / 2, exactly, in integers.
Units: picoseconds.
"""

from __future__ import annotations

from math import sqrt


def length_ps(steps: int, first_ps: int, growth_ps: int) -> int:
    """How long steps last together, of which the first lasts `first_ps` and each next `growth_ps` more."""
    return steps * first_ps + growth_ps * (steps * (steps - 1) // 2)


def steps_until(elapsed_ps: int, first_ps: int, growth_ps: int) -> int:
    """The smallest number of steps (at least one) that last `elapsed_ps` or longer.

    Solves n * first + growth * n * (n - 1) / 2 >= elapsed: in floats, then put right in integers.
    """
    if elapsed_ps <= first_ps:
        return 1
    if not growth_ps:
        return -(-elapsed_ps // first_ps)
    twice = 2.0 * first_ps - growth_ps
    steps = int((sqrt(twice * twice + 8.0 * growth_ps * elapsed_ps) - twice) / (2.0 * growth_ps))
    while length_ps(steps, first_ps, growth_ps) < elapsed_ps:
        steps += 1
    while steps > 1 and length_ps(steps - 1, first_ps, growth_ps) >= elapsed_ps:
        steps -= 1
    return steps
