"""How often a case is timed, and what is kept of the times: a median and the distance of the quartiles.

A case is run for a while unmeasured, since first calls choose kernels, and since the clock falls under load:
what is wanted is the time that lasts. Then it is run until it has been timed often enough or its share of the
time is used up, and at least a few times in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

Clock = Callable[[], float]
"""Seconds from some instant on."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Unmeasured for `warm_s`, then `least` to `most` repetitions, within `share_s` if that allows."""

    warmups: int = 2
    warm_s: float = 0.1
    least: int = 5
    most: int = 30
    share_s: float = 0.2


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
    started, calls = clock(), 0
    while calls < policy.warmups or clock() - started < policy.warm_s:
        once()
        calls += 1
    started = clock()
    samples: list[float] = []
    while len(samples) < policy.most:
        if len(samples) >= policy.least and clock() - started > policy.share_s:
            break
        samples.append(once())
    return samples
