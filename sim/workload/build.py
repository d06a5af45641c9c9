"""From the form of a scenario to a workload, and the checks that join the fields of the form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sim.base.errors import suggest
from sim.workload.library import find_trace
from sim.workload.readers import guess_format, reader
from sim.workload.source import TraceFile
from sim.workload.trace import TraceWorkload
from sim.workload.tracerows import ReadRules, TraceRows

if TYPE_CHECKING:
    from sim.base.streams import Streams
    from sim.config.scenario import Workload as WorkloadForm
    from sim.workload.request import Workload

Problem = tuple[str, str, str]
"""A path below the workload form (`arrivals.cv`), what is wrong there, and the remedy."""

ARRIVAL_FIELDS = {"poisson": (), "gamma": ("cv",), "diurnal": ("period", "peak_to_mean")}
LENGTH_FIELDS = {"fixed": ("tokens",), "lognormal": ("median_tokens", "sigma"), "empirical": ("file",)}
LENGTH_OPTIONS = {"fixed": (), "lognormal": ("max_tokens",), "empirical": ()}
EXAMPLES = {
    "cv": "cv: 3",
    "period": "period: 24 h",
    "peak_to_mean": "peak_to_mean: 1.5",
    "tokens": "tokens: 1024",
    "median_tokens": "median_tokens: 1000",
    "sigma": "sigma: 1",
    "file": "file: lengths.txt",
    "input": "input: {kind: fixed, tokens: 1024}",
    "output": "output: {kind: fixed, tokens: 200}",
}


def build_workload(form: WorkloadForm, streams: Streams, until_ps: int | None = None) -> Workload:
    """Make the workload of a form that `validate_workload` accepts, with arrivals before `until_ps`."""
    if form.trace is not None:
        return open_trace(form, streams, until_ps)
    if form.generator is not None:
        from sim.workload.mooncake import ConversationWorkload  # noqa: PLC0415  needs numpy

        return ConversationWorkload(streams, form.rate, limit=form.limit, until_ps=until_ps)
    from sim.workload.synthetic import SyntheticWorkload  # noqa: PLC0415  needs numpy

    if form.arrivals is None or form.input is None or form.output is None:
        raise ValueError("validate_workload was not asked")
    return SyntheticWorkload(form.arrivals, form.input, form.output, streams, form.limit, until_ps)


def open_trace(form: WorkloadForm, streams: Streams, until_ps: int | None = None) -> TraceWorkload:
    """Open the trace of a form."""
    source = TraceFile(find_trace(form.trace or ""))
    kind = guess_format(source) if form.format == "auto" else form.format
    rules = ReadRules(form.block_tokens, form.sort_window, form.on_bad_row == "skip")
    return TraceWorkload(
        TraceRows(source, kind, rules),
        streams,
        tick_ps=form.tick,
        copies=form.scale.copies,
        shared_blocks=form.scale.shared_blocks,
        limit=form.limit,
        until_ps=until_ps,
    )


def validate_workload(form: WorkloadForm) -> list[Problem]:
    """Find fields that are missing for the chosen kind, or belong to another one."""
    problems = list(_source_problems(form))
    if (
        form.trace is not None
        and form.format != "auto"
        and ":" not in form.format
        and form.format not in reader
    ):
        near = suggest(form.format, reader.names())
        hint = f"did you mean '{near}'?" if near else f"choose from auto, {', '.join(reader.names())}"
        problems.append(("format", f"unknown trace format '{form.format}'", hint))
    if form.arrivals is not None:
        problems += _kind_problems("arrivals", form.arrivals, ARRIVAL_FIELDS, {})
        for part in ("input", "output"):
            lengths = getattr(form, part)
            if lengths is not None:
                problems += _kind_problems(part, lengths, LENGTH_FIELDS, LENGTH_OPTIONS)
    return problems


def _source_problems(form: WorkloadForm) -> Iterator[Problem]:
    """Find fields of a source that is not the chosen one, and lengths that are missing."""
    from sim.config.scenario import FIELDS_OF  # noqa: PLC0415  the list of readers needs no forms

    chosen = next(source for source in FIELDS_OF if getattr(form, source) is not None)
    for source, fields in FIELDS_OF.items():
        for field in fields:
            if source != chosen and field in form.model_fields_set and getattr(form, field) is not None:
                yield field, f"belongs to {source}, and the workload is made by {chosen}", f"remove {field}"
    if chosen == "arrivals":
        for field in FIELDS_OF[chosen]:
            if getattr(form, field) is None:
                yield field, f"missing: generated requests need {field} lengths", f"write {EXAMPLES[field]}"


def _kind_problems(
    path: str, form: Any, needed: dict[str, tuple[str, ...]], options: dict[str, tuple[str, ...]]
) -> Iterator[Problem]:
    """Find fields that the kind of a form needs or does not know."""
    fields = sorted({field for each in (*needed.values(), *options.values()) for field in each})
    own = needed[form.kind]
    for field in fields:
        given = getattr(form, field) is not None
        if field in own and not given:
            yield f"{path}.{field}", f"missing: kind {form.kind} needs it", f"write {EXAMPLES[field]}"
        elif given and field not in own and field not in options.get(form.kind, ()):
            others = [kind for kind in needed if field in needed[kind] or field in options.get(kind, ())]
            yield (
                f"{path}.{field}",
                f"kind {form.kind} has no {field}",
                f"remove it, or use kind: {others[0]}",
            )
