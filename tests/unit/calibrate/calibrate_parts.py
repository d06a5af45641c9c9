"""A meter that makes times up, on a clock that moves only when something is measured."""

from contextlib import contextmanager
from dataclasses import dataclass, field

from sim.calibrate.cases import GemmCase, Shape, StepCase
from sim.calibrate.measure import Session
from sim.calibrate.meter import Facts, Reading, RefusedError
from sim.calibrate.samples import Policy

SHAPE = Shape("llama-3.1-8b", 32, 4096, 32, 8, 128, 14336, 128256)
FACTS = Facts(
    gpu="NVIDIA H200",
    gpus=1,
    memory_bytes=150 * 10**9,
    multiprocessors=132,
    sm_clock_mhz=1980,
    memory_clock_mhz=3201,
    power_limit_w=700.0,
    software={"driver": "580.1", "torch": "2.11.0", "cuda": "13.0"},
)


@dataclass
class FakeClock:
    """Seconds that pass by being added."""

    now_s: float = 0.0

    def __call__(self):
        return self.now_s


@dataclass
class FakeMeter:
    """Every case takes a time that follows from its sizes, with a small ripple; some are refused."""

    clock: FakeClock = field(default_factory=FakeClock)
    described: Facts = FACTS
    refused: set = field(default_factory=set)
    closed: bool = False
    calls: int = 0
    measured: list = field(default_factory=list)

    def facts(self):
        return self.described

    @contextmanager
    def prepared(self, case):
        if case in self.refused:
            raise RefusedError("out of memory")
        self.measured.append(case)
        yield lambda: self._once(case)

    def readings(self):
        return [Reading(1980, 400.0, 50.0), Reading(1700, 690.0, 60.0), Reading(1900, 600.0, 55.0)]

    def close(self):
        self.closed = True

    def _once(self, case):
        self.calls += 1
        ripple = (-1, 0, 1)[self.calls % 3] * 1e-7
        self.clock.now_s += seconds(case) + ripple
        return seconds(case) + ripple


def seconds(case):
    """What a case takes, made up."""
    if isinstance(case, GemmCase):
        return 1e-5 + 2 * case.m * case.n * case.k / 7e14
    return 1e-3 + (1e-7 * case.tokens if isinstance(case, StepCase) else 0)


def session(meter, limit_s=1e9, policy=None, lines=None, kept=None):
    """A session on the meter's clock that keeps what it is told in lists."""
    return Session(
        clock=meter.clock,
        policy=policy or Policy(warm_s=0.0, least=3, most=6, share_s=1.0),
        limit_s=limit_s,
        tell=(lines if lines is not None else []).append,
        keep=lambda results: kept.append(len(results.times)) if kept is not None else None,
    )
