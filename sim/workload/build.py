"""From the form of a scenario to a workload, and the checks that join the fields of the form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sim.base.errors import did_you_mean, suggest
from sim.workload.library import find_trace
from sim.workload.readers import guess_format, reader
from sim.workload.sessiontrace import RecordedSessions, guess_session_format, session_format
from sim.workload.source import TraceFile
from sim.workload.trace import TraceWorkload
from sim.workload.tracerows import ReadRules, TraceRows

if TYPE_CHECKING:
    from sim.base.streams import Streams
    from sim.config.scenario import Workload as WorkloadForm
    from sim.workload.request import Workload
    from sim.workload.session import SessionWorkload

Problem = tuple[str, str, str]
"""A path below the workload form (`arrivals.cv`), what is wrong there, and the remedy."""

ARRIVAL_FIELDS = {
    "poisson": (),
    "gamma": ("cv",),
    "diurnal": ("period", "peak_to_mean"),
    "ramp": ("period", "first_rate"),
    "bursts": ("period", "burst_rate", "burst"),
}
LENGTH_FIELDS = {"fixed": ("tokens",), "lognormal": ("median_tokens", "sigma"), "empirical": ("file",)}
LENGTH_OPTIONS = {"fixed": (), "lognormal": ("max_tokens",), "empirical": ()}
EXAMPLES = {
    "cv": "cv: 3",
    "period": "period: 24 h",
    "peak_to_mean": "peak_to_mean: 1.5",
    "first_rate": "first_rate: 1 req/s",
    "burst_rate": "burst_rate: 100 req/s",
    "burst": "burst: 10 s",
    "tokens": "tokens: 1024",
    "median_tokens": "median_tokens: 1000",
    "sigma": "sigma: 1",
    "file": "file: lengths.txt",
    "input": "input: {kind: fixed, tokens: 1024}",
    "output": "output: {kind: fixed, tokens: 200}",
}


def build_workload(form: WorkloadForm, streams: Streams, until_ps: int | None = None) -> Workload:
    """Make the workload of a form that `validate_workload` accepts, with arrivals before `until_ps`.

    Where users wait for answers it is `build_sessions` that makes one.
    """
    plain = _plain_workload(form, streams, until_ps)
    if form.cancel is None and not form.priorities:
        return plain
    from sim.workload.leaving import Marked  # noqa: PLC0415  needs numpy

    return Marked(plain, form, streams)


def build_sessions(form: WorkloadForm, streams: Streams) -> SessionWorkload | None:
    """Make the closed loop of a form; None where requests come by themselves."""
    from sim.workload import sessions  # noqa: PLC0415  needs numpy
    from sim.workload.leaving import MarkedSessions  # noqa: PLC0415  needs numpy

    made: SessionWorkload
    if form.concurrency is not None and form.input is not None and form.output is not None:
        pauses = form.think or 0, form.ramp_up or 0
        made = sessions.ConcurrentWorkload(
            form.concurrency, form.input, form.output, streams, *pauses, form.limit, form.block_tokens
        )
    elif form.sessions is None:
        return None
    elif form.sessions.trace is not None:
        made = open_sessions(form, streams)
    else:
        made = sessions.GeneratedSessions(form.sessions, streams, form.limit, form.block_tokens)
    return MarkedSessions(made, form, streams) if form.cancel is not None or form.priorities else made


def open_sessions(form: WorkloadForm, streams: Streams) -> RecordedSessions:
    """Open the recorded sessions of a form."""
    assert form.sessions is not None
    source = TraceFile(find_trace(form.sessions.trace or ""))
    kind = guess_session_format(source) if form.sessions.format == "auto" else form.sessions.format
    return RecordedSessions(source, kind, form.sessions, streams, form.block_tokens, form.limit)


def _plain_workload(form: WorkloadForm, streams: Streams, until_ps: int | None) -> Workload:
    if form.trace is not None:
        return open_trace(form, streams, until_ps)
    if form.servegen is not None:
        from sim.workload.servegen import ServeGenWorkload  # noqa: PLC0415  needs numpy

        return ServeGenWorkload(
            find_trace(form.servegen), streams, form.rate_scale, form.limit, until_ps, form.block_tokens
        )
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
    problems += _generated_problems(form, "")
    if form.sessions is not None:
        problems += _generated_problems(form.sessions, "sessions.")
        known = form.sessions.format == "auto" or form.sessions.format in session_format
        if not known:
            hint = did_you_mean(form.sessions.format, ["auto", *session_format.names()])
            problems.append(("sessions.format", f"unknown session format '{form.sessions.format}'", hint))
    return problems


def _generated_problems(form: Any, path: str) -> Iterator[Problem]:
    """Find fields of arrivals and lengths that do not belong to their kind."""
    if form.arrivals is not None:
        yield from _kind_problems(f"{path}arrivals", form.arrivals, ARRIVAL_FIELDS, {})
    for part in ("input", "output"):
        lengths = getattr(form, part)
        if lengths is not None:
            yield from _kind_problems(f"{path}{part}", lengths, LENGTH_FIELDS, LENGTH_OPTIONS)


def _source_problems(form: WorkloadForm) -> Iterator[Problem]:
    """Find fields of a source that is not the chosen one, and lengths that are missing."""
    from sim.config.scenario import FIELDS_OF  # noqa: PLC0415  the list of readers needs no forms

    chosen = next(source for source in FIELDS_OF if getattr(form, source) is not None)
    homes = {field: source for source in reversed(list(FIELDS_OF)) for field in FIELDS_OF[source]}
    for source, fields in FIELDS_OF.items():
        for field in fields:
            is_foreign = field not in FIELDS_OF[chosen] and homes[field] == source
            if is_foreign and field in form.model_fields_set and getattr(form, field) is not None:
                yield field, f"belongs to {source}, and the workload is made by {chosen}", f"remove {field}"
    if chosen in ("arrivals", "concurrency"):
        for field in FIELDS_OF["arrivals"]:
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
