"""How often a case is timed, and what is kept of the times: a median and the distance of the quartiles.

A case is run a few times unmeasured, since first calls load, compile and choose kernels; then until it has
been timed often enough or its share of the time is used up, and at least a few times in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

Clock = Callable[[], float]
"""Seconds from some instant on."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How often: `warmups` unmeasured, then `least` to `most` repetitions within `share_s` if they fit."""

    warmups: int = 3
    least: int = 5
    most: int = 30
    share_s: float = 0.25


@dataclass(frozen=True, slots=True)
class Summary:
    """What is kept of the repetitions, in microseconds."""

    median_us: float
    iqr_us: float
    repetitions: int

    @classmethod
    def of(cls, samples_s: Sequence[float]) -> Summary:
        """Summarise times in seconds, to the nanosecond."""
        low, _, high = quantiles(samples_s, n=4, method="inclusive")
        return cls(round(median(samples_s) * 1e6, 3), round((high - low) * 1e6, 3), len(samples_s))


def repeated(once: Callable[[], float], clock: Clock, policy: Policy) -> list[float]:
    """Call what times itself as often as the policy says, and return its times in seconds."""
    for _ in range(policy.warmups):
        once()
    started = clock()
    samples: list[float] = []
    while len(samples) < policy.most:
        if len(samples) >= policy.least and clock() - started > policy.share_s:
            break
        samples.append(once())
    return samples
