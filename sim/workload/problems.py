"""What is wrong with a workload beyond its form: fields, files, and what users who wait for answers need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sim.base.errors import SimError
from sim.workload.build import Problem, validate_workload
from sim.workload.library import find_trace

if TYPE_CHECKING:
    from sim.config.scenario import Run, Workload


def workload_problems(form: Workload, run: Run) -> Iterator[Problem]:
    """Paths from the scenario on, what is wrong there, and the remedy."""
    for path, problem, hint in validate_workload(form):
        yield f"workload.{path}", problem, hint
    named = {"trace": form.trace, "servegen": form.servegen}
    if form.sessions is not None:
        named["sessions.trace"] = form.sessions.trace
    for key, name in named.items():
        if name is not None:
            yield from _missing_file(f"workload.{key}", name)
    if form.concurrency is not None or form.sessions is not None:
        yield from _closed_loop(form, run)


def _missing_file(path: str, name: str) -> Iterator[Problem]:
    try:
        find_trace(name)
    except SimError as missing:
        problem, _, hint = str(missing).partition("\n")
        yield path, problem, hint.strip().removeprefix("hint: ")


def _closed_loop(form: Workload, run: Run) -> Iterator[Problem]:
    """A loop begins with the simulation, and has to end."""
    if run.start:
        yield "run.start", "users who wait for answers begin at 0 s", "remove it, and use run.warmup"
    if run.warm_caches is not False:
        yield "run.warm_caches", "nothing comes before users who wait for answers", "use run.warmup instead"
    is_recorded = form.sessions is not None and form.sessions.trace is not None
    if run.duration is None and form.limit is None and not is_recorded:
        yield "run.duration", "users who wait for answers ask without end", "set it, or workload.limit"
