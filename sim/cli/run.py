"""`sim run`: load, check, simulate, save, show; and the repetition of a run from its folder."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sim import api
from sim.cli.check import shown_doubts
from sim.cli.files import scenario_file
from sim.cli.trouble import GOOD, INTERRUPTED, MISSED, OUR_BUG, say
from sim.config.scenario import Scenario
from sim.report.plots import save_cdf
from sim.report.progress import ProgressLine
from sim.report.text import Line, screen, show
from sim.results import store
from sim.results.provenance import Invocation, differences, now, surroundings
from sim.results.run import Run, open_run
from sim.tables.sinks import ParquetSink


@dataclass(frozen=True, slots=True)
class Order:
    """What the user asked for."""

    path: Path
    sets: tuple[str, ...] = ()
    variant: str | None = None
    out: Path | None = None
    as_json: bool = False


def simulate(order: Order) -> int:
    """Carry out an order and return the exit code."""
    path = scenario_file(order.path)
    earlier = _earlier(order)
    scenario = api.load(path, sets=list(order.sets), variant=order.variant)
    shown_doubts(scenario)
    with store.staging(order.out) as folder:
        started_at, started_s = now(), time.monotonic()
        with _kept_on_failure(scenario), ProgressLine(window_ps=scenario.run.duration) as progress:
            run = api.run(scenario, sink=ParquetSink(folder), progress=progress)
        invocation = Invocation(("sim", *sys.argv[1:]), started_at, round(time.monotonic() - started_s, 3))
        is_same = earlier is not None and earlier.digest == run.digest
        if not (is_same and order.out is None):
            run = store.save(run, folder, order.out, invocation, save_cdf)
    _answer(run, earlier, order)
    return _exit_code(run, earlier)


def _earlier(order: Order) -> Run | None:
    """The run that is to be repeated, where the order names its folder and changes nothing."""
    is_changed = order.sets or order.variant
    return open_run(order.path) if order.path.is_dir() and not is_changed else None


def _answer(run: Run, earlier: Run | None, order: Order) -> None:
    if order.as_json:
        folder = None if run.folder is None else str(run.folder)
        sys.stdout.write(store.json_text({**run.figures, "folder": folder}))
    else:
        folder = None if run.folder is None else str(run.folder)
        show(screen(run.figures, folder, _typed_command()), sys.stdout)
    if earlier is not None:
        show(_comparison(run, earlier), sys.stderr if order.as_json else sys.stdout)


def _typed_command() -> str:
    """What brought us here: `sim` where a shell finds it, else the path that was typed."""
    typed = Path(sys.argv[0])
    return "sim" if shutil.which("sim") or typed.name != "sim" else str(typed)


def _comparison(run: Run, earlier: Run) -> list[Line]:
    """Whether a repeated run did the same, and if not, what has changed since."""
    if earlier.digest == run.digest:
        return [[("✓", "bold green"), (f" the digest matches that of {earlier.folder}", "")]]
    if earlier.figures["interrupted"]:
        return [[("~", "yellow"), (f" {earlier.folder} was interrupted: there is no digest to match", "")]]
    head: Line = [
        ("✗", "bold red"),
        (f" the digest differs from that of {earlier.folder}: {earlier.digest}", ""),
    ]
    inputs = store.input_files(run.scenario) if run.scenario is not None else []
    found = differences(earlier.provenance, surroundings(inputs))
    causes = found or ["nothing that should matter has changed: please report it as a bug"]
    return [head, *([(f"    {cause}", "")] for cause in causes)]


def _exit_code(run: Run, earlier: Run | None) -> int:
    if run.figures["interrupted"]:
        return INTERRUPTED
    is_other = earlier is not None and not earlier.figures["interrupted"] and earlier.digest != run.digest
    return MISSED if is_other or run.is_slo_met is False else GOOD


@contextmanager
def _kept_on_failure(scenario: Scenario) -> Iterator[None]:
    """Where the simulation breaks, leave a folder that can be attached to a report."""
    try:
        yield
    except Exception as error:
        if getattr(error, "exit_code", OUR_BUG) == OUR_BUG and not isinstance(error, OSError):
            say(f"kept for your report: {store.save_failure(scenario, error)}/")
        raise
