"""`sim calibrate`: measure the GPU of this machine and write a device file that scenarios can name."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from time import monotonic

from sim.base.errors import ConfigError, UnknownNameError
from sim.base.units import UnitError, parse
from sim.calibrate.cases import Case, GemmCase, Shape
from sim.calibrate.devicefile import Provenance, catalogue_name, device_of, save
from sim.calibrate.measure import Results, Session, measured, section
from sim.calibrate.meter import Facts, Meter
from sim.calibrate.proof import prove
from sim.calibrate.samples import Policy
from sim.calibrate.sizes import TABLES, Wanted, cases
from sim.calibrate.torchmeter import TorchMeter
from sim.catalog.load import load_catalog
from sim.cli.trouble import GOOD, say

PRECISIONS = ("bf16", "fp8")
PROVEN = ("steps", "attention")


@dataclass(frozen=True, slots=True)
class Order:
    """What the user asked for, as typed."""

    out: Path
    model: str
    gpu: str | None
    only: str | None
    precision: str | None
    limit: str
    source: str
    licence: str
    quick: bool
    dry_run: bool


def calibrate(order: Order) -> int:
    """Carry out an order and return the exit code."""
    wanted = Wanted(
        shape=Shape.of(load_catalog().models[order.model]),
        precisions=words_of(order.precision, "precision", PRECISIONS),
        tables=words_of(order.only, "table", TABLES),
        quick=order.quick,
    )
    limit_s = seconds_of(order.limit)
    if order.gpu is not None:
        load_catalog().gpus[order.gpu]
    if order.dry_run:
        preview(cases(wanted, gpus=2), wanted)
        return GOOD
    refuse_what_is_there(order.out)
    with closing(TorchMeter()) as meter:
        if set(PROVEN) & set(wanted.tables):
            prove()
        results = carried_out(order, wanted, limit_s, meter)
    conclude(results, order.out)
    return GOOD


def carried_out(order: Order, wanted: Wanted, limit_s: float, meter: Meter) -> Results:
    """Measure what is wanted with a meter, the file growing as it goes."""
    facts = meter.facts()
    provenance = provenance_of(order, facts)
    say(f"{facts.gpu}, {facts.gpus} of them, catalogue name {provenance.catalogue or 'unknown: give --gpu'}")
    session = Session(
        clock=monotonic,
        policy=Policy(),
        limit_s=limit_s,
        tell=say,
        keep=lambda results: save(device_of(results, facts, provenance), order.out),
    )
    return measured(cases(wanted, facts.gpus), meter, session)


def provenance_of(order: Order, facts: Facts) -> Provenance:
    """Who, when, how, and which GPU of the catalogue it is."""
    catalogue = order.gpu or catalogue_name(facts.gpu, list(load_catalog().gpus))
    stem = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in order.out.stem)
    return Provenance(
        name=stem if stem[:1].isalpha() else f"device-{stem}",
        catalogue=catalogue,
        date=date.today().isoformat(),
        command=f"sim {shlex.join(sys.argv[1:])}",
        source=order.source,
        licence=order.licence,
    )


def words_of(text: str | None, kind: str, known: Sequence[str]) -> tuple[str, ...]:
    """The words of a comma-separated option, in the order of all; all of them where it is not given."""
    if text is None:
        return tuple(known)
    given = [word.strip() for word in text.split(",") if word.strip()]
    for word in given:
        if word not in known:
            raise UnknownNameError(kind, word, known)
    return tuple(word for word in known if word in given)


def seconds_of(text: str) -> float:
    """A time limit in seconds."""
    try:
        return float(parse(text, "time")) / 1e12
    except UnitError as error:
        raise ConfigError(f"--limit {text}", None, None, problem=error.problem, hint=error.hint) from None


def refuse_what_is_there(path: Path) -> None:
    """Nothing is ever overwritten."""
    if path.exists():
        hint = "name another file with --out; nothing is overwritten"
        raise ConfigError(str(path), None, None, problem="is already there", hint=hint)
    if not path.parent.is_dir():
        raise ConfigError(str(path), None, None, problem="there is no such folder", hint="make it first")


def preview(planned: Sequence[Case], wanted: Wanted) -> None:
    """Print what would be measured."""
    counts = Counter(section(case) for case in planned)
    width = max(len(name) for name in counts)
    for name, count in counts.items():
        example = next(case for case in planned if section(case) == name)
        print(f"{name:<{width}}  {count:>4}  such as {example}")
    print(f"{'in all':<{width}}  {len(planned):>4}  all_reduce and device-peer only where there are two GPUs")
    weights = max(wanted.shape.matrix_bytes(precision) for precision in wanted.precisions)
    if "steps" in wanted.tables:
        print(f"steps of {wanted.shape.name}: {weights / 1e9:.1f} GB of weights, KV in what memory is left")


def conclude(results: Results, path: Path) -> None:
    """Print what was found, in three lines, and how to use it."""
    products = [(case, summary) for case, summary in results.times if isinstance(case, GemmCase)]
    for precision in PRECISIONS:
        rates = [
            2 * case.m * case.n * case.k / summary.median_us / 1e6
            for case, summary in products
            if case.precision == precision
        ]
        if rates:
            print(f"{precision} GEMM   at most {max(rates):.0f} TFLOP/s")
    print(
        f"{len(results.times)} cases in {results.seconds:.0f} s, {len(results.refused)} refused, "
        f"{len(results.left_out)} left out"
    )
    print(f"wrote {path}; in a scenario: timing: {{kind: measured, table: {path}}}")
