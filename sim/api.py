"""The verbs: load a scenario, run it, open what a run left behind."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import compress
from operator import not_
from pathlib import Path
from typing import Protocol

from sim.base.errors import Advice, SimulationError
from sim.base.streams import Streams
from sim.checks import check
from sim.clock import Clock, Errand
from sim.config.load import load_scenario
from sim.config.scenario import Scenario
from sim.network.fabric import Fabric
from sim.resolve import Resolved, resolve
from sim.results.run import Run, open_run
from sim.serving.cluster import Serving
from sim.serving.meter import Meter
from sim.serving.seating import lanes
from sim.serving.users import Users
from sim.serving.warm import warm
from sim.tables.recorder import MemorySink, Recorder
from sim.tables.sinks import ParquetSink
from sim.tables.uses import Outcome
from sim.tables.watched import Watched
from sim.timing.measured import Measured
from sim.workload.build import build_sessions, build_workload
from sim.workload.request import Nobody, Workload
from sim.workload.window import Window

NOBODY = Nobody()
__all__ = ["check", "load", "open_run", "run"]

EVENTS_AT_ONCE = 20_000
"""Events between two looks at the time limit and the progress line: some 0.1 s of work."""


class Progress(Protocol):
    """Told now and then how far a simulation is: its clock, and requests done, running and waiting."""

    def update(self, now_ps: int, done: int, running: int, waiting: int, events: int) -> None:
        """Show the state."""


class Silent:
    """Shows nothing."""

    def update(self, now_ps: int, done: int, running: int, waiting: int, events: int) -> None:
        """Do nothing."""


def load(path: Path | str, sets: Sequence[str] = (), variant: str | None = None) -> Scenario:
    """Read a scenario, in a variant and with KEY=VALUE overrides. Raises ConfigErrors with every mistake."""
    return load_scenario(path, sets, variant)


def run(
    scenario: Scenario, sink: MemorySink | ParquetSink | None = None, progress: Progress | None = None
) -> Run:
    """Simulate a scenario and return its tables.

    Rows go to `sink` (memory if none is given). Ctrl-C ends the simulation early: what has been recorded
    so far is returned and marked as interrupted.
    """
    resolved = resolve(scenario)
    sink = sink if sink is not None else MemorySink()
    decode = resolved.plan.decode.timing
    rows = Watched(sink, decode.beyond) if isinstance(decode, Measured) else sink
    simulation = Simulation(resolved, Recorder(rows))
    outcome = simulation.play(progress or Silent())
    sink.links(outcome.links)
    return Run.from_sink(sink, outcome, scenario)


class Simulation:
    """A resolved scenario on a clock that has not started yet."""

    def __init__(self, resolved: Resolved, log: Recorder) -> None:
        scenario = resolved.scenario
        self.resolved = resolved
        self.form = scenario.run
        self.clock = Clock()
        fabric = Fabric(resolved.cluster, lanes(resolved.cluster, scenario.pools), scenario.run.seed)
        self.serving = Serving(self.clock, resolved.plan, fabric, log)
        self.meter = Meter(self.clock, self.serving)
        self.sessions = build_sessions(scenario.workload, Streams(scenario.run.seed))
        self.workload = _workload(scenario) if self.sessions is None else NOBODY
        self.window = Window(self.workload, self.form.start, self.form.duration)
        self.events = 0

    def play(self, progress: Progress, ahead: bool = False) -> Outcome:
        """Fill the caches, let the requests of the window arrive, and go on until all are done.

        Requests are made as they arrive, or all `ahead`, so that `cpu_s` is the replay and nothing else.
        """
        form, clock, serving, meter = self.form, self.clock, self.serving, self.meter
        with undisturbed_memory():
            self._warm()
            if ahead:
                self.window.make_ahead()
            started = time.process_time()
            serving.offered.callbacks.append(lambda _: clock.stop_after(serving.last_arrival_ps + form.drain))
            if self.sessions is not None:
                Users(clock, serving, self.sessions, form.duration).play()
            else:
                Errand(serving.offer(self.window.arrivals()))
            Errand(meter.sample(form.sample_every))
            Errand(meter.watch(form.warmup, form.duration))
            interrupted = self._advance(progress)
            cpu_s = time.process_time() - started
        serving.close()
        return Outcome(
            window_ps=meter.window_ps(),
            simulated_ps=clock.now,
            gpus=self.resolved.cluster.gpus,
            replicas=meter.replica_uses(),
            links=meter.link_uses(),
            rejected_reasons=dict(serving.rejected),
            events=self.events,
            cpu_s=cpu_s,
            interrupted=interrupted,
            skipped_rows=getattr(self.workload, "skipped_rows", 0),
            doubts=self._doubts(),
            kv_pool=meter.kv_pool_use(),
            gpu_kinds=self.resolved.cluster.gpu_kinds,
        )

    def _doubts(self) -> tuple[Advice, ...]:
        """What was asked of measured tables that they do not hold."""
        plan = self.resolved.plan
        pools = [pool for pool in (plan.prefill, plan.decode, plan.colocated) if pool is not None]
        measured = {id(pool.timing): pool.timing for pool in pools if isinstance(pool.timing, Measured)}
        return tuple(doubt for timing in measured.values() for doubt in timing.beyond.doubts())

    def _warm(self) -> None:
        """Feed requests before the window to the caches, as far back as asked; simulate none of them."""
        back = self.form.warm_caches
        since = 0 if back is True else self.form.start - back
        history = self.window.before(since)
        serving = self.serving
        if self.resolved.plan.reuse:
            if serving.colocated is None:
                warm(serving.prefill, history)
            else:
                before = list(history)
                went = [serving.dispatch.went_colocated(request) for request in before]
                warm(serving.prefill, compress(before, map(not_, went)))
                warm(serving.colocated, compress(before, went))
        for _ in history:
            pass

    def _advance(self, progress: Progress) -> bool:
        """Let events happen until none is left, or the time to drain is over; whether the user broke off."""
        clock, serving = self.clock, self.serving
        try:
            while happened := clock.advance(EVENTS_AT_ONCE):
                self.events += happened
                waiting = serving.waiting
                progress.update(clock.now, serving.done, len(serving.live) - waiting, waiting, self.events)
        except KeyboardInterrupt:
            return True
        if serving.live and not clock.is_over:
            raise SimulationError(f"{len(serving.live)} requests are stuck: nothing is left to happen")
        return False


@contextmanager
def undisturbed_memory() -> Iterator[None]:
    """Keep the garbage collector away: a replay makes no cycles, and looking for them takes a fifth of it."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _workload(scenario: Scenario) -> Workload:
    run = scenario.run
    until_ps = None if run.duration is None else run.start + run.duration
    return build_workload(scenario.workload, Streams(run.seed), until_ps)
