"""What measures: the side of `sim calibrate` that touches a GPU, as the rest of it sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from sim.base.errors import SimError
from sim.calibrate.cases import Case


class RefusedError(SimError):
    """A case that the device, its memory or its libraries will not do; the others go on."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a machine says of itself; None for what it does not say."""

    gpu: str
    gpus: int
    memory_bytes: int | None
    multiprocessors: int | None
    sm_clock_mhz: int | None
    memory_clock_mhz: int | None
    power_limit_w: float | None
    software: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Reading:
    """Clock, power and temperature at one instant."""

    sm_clock_mhz: int
    power_w: float
    temperature_c: float


class Meter(Protocol):
    """A device with a stopwatch."""

    def facts(self) -> Facts:
        """Describe the device."""
        ...

    def prepared(self, case: Case) -> AbstractContextManager[Callable[[], float]]:
        """Set a case up; what is handed out does it once and returns its seconds. May raise RefusedError."""
        ...

    def readings(self) -> list[Reading]:
        """What the driver said since it was last asked."""
        ...
