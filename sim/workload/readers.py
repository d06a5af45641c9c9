"""Trace formats. A reader yields a Row for each line it can use and a BadRow for each it cannot.

Readers stream: none holds more than a line (the `run` reader holds one batch of rows). Whether a bad
row stops the run, rows are in order, or hash ids fit is decided behind them, in sim.workload.trace.
To add a format: one function here, and a five-line sample in tests/data.
"""

from __future__ import annotations

import csv as csv_module
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

from sim.base.errors import ValueProblem
from sim.base.registry import Registry
from sim.workload.rows import (
    MEND,
    PS_PER_MS,
    PS_PER_S,
    BadRow,
    Row,
    hash_ids,
    instant_ps,
    required,
    tokens,
)
from sim.workload.source import TraceFile

Reader = Callable[[TraceFile], Iterator[Row | BadRow]]

reader: Registry[Reader] = Registry("reader")

ONE_OBJECT = "each line is one JSON object"
MOONCAKE_KEYS = frozenset(("timestamp", "input_length", "output_length", "hash_ids"))


@reader("mooncake")
def mooncake(source: TraceFile) -> Iterator[Row | BadRow]:
    """JSON lines of Mooncake: timestamp in ms, input_length, output_length and, if known, hash_ids."""
    for line, text in enumerate(source.lines(), 1):
        if not text or text.isspace():
            continue
        try:
            fields = json_object(text)
            yield Row(
                line,
                instant_ps(required(fields, "timestamp"), "timestamp", PS_PER_MS),
                tokens(required(fields, "input_length"), "input_length"),
                tokens(required(fields, "output_length"), "output_length"),
                hash_ids(fields.get("hash_ids"), "hash_ids"),
                tuple(key for key in fields if key not in MOONCAKE_KEYS),
            )
        except ValueProblem as bad:
            yield BadRow(line, bad.problem, bad.hint or "")


@reader("azure")
def azure(source: TraceFile) -> Iterator[Row | BadRow]:
    """CSV of the Azure LLM inference traces, 2023 and 2024: TIMESTAMP, ContextTokens, GeneratedTokens."""
    columns = {"at": ("timestamp",), "input": ("contexttokens",), "output": ("generatedtokens",)}
    origin_ps: int | None = None
    for row in _table(source, columns, _calendar_ps):
        if isinstance(row, Row):
            origin_ps = row.at_ps if origin_ps is None else origin_ps
            yield row._replace(at_ps=row.at_ps - origin_ps)
        else:
            yield row


@reader("burstgpt")
def burstgpt(source: TraceFile) -> Iterator[Row | BadRow]:
    """CSV of BurstGPT: Timestamp in s, Request tokens, Response tokens (0 for requests that failed)."""
    columns = {"at": ("timestamp",), "input": ("request_tokens",), "output": ("response_tokens",)}
    return _table(source, columns, _seconds_ps)


@reader("csv")
def plain_csv(source: TraceFile) -> Iterator[Row | BadRow]:
    """CSV with a header: arrived_at_s, input_tokens, output_tokens, or other usual names of these."""
    return _table(source, PLAIN_COLUMNS, _seconds_ps)


@reader("run")
def run_folder(source: TraceFile) -> Iterator[Row | BadRow]:
    """Read the requests of a saved run: its folder, or its requests.parquet."""
    from sim.workload.runrows import rows_of_run  # noqa: PLC0415  pyarrow is slow to import

    return rows_of_run(source)


PLAIN_COLUMNS: Mapping[str, Sequence[str]] = {
    "at": (
        "arrived_at_s",
        "arrived_at",
        "arrival_s",
        "arrival",
        "arrival_time",
        "time_s",
        "timestamp",
        "time",
    ),
    "input": (
        "input_tokens",
        "input_length",
        "prompt_tokens",
        "context_tokens",
        "num_prefill_tokens",
        "input",
    ),
    "output": (
        "output_tokens",
        "output_length",
        "completion_tokens",
        "generated_tokens",
        "num_decode_tokens",
        "output",
    ),
}
MEANING = {"at": "arrival time", "input": "input tokens", "output": "output tokens"}


def guess_format(source: TraceFile) -> str:
    """Tell the format of a file from its name and its first line."""
    if source.path.is_dir() or source.path.suffix == ".parquet":
        return "run"
    first = source.first_line()
    if not first and not any(source.lines()):
        raise source.error(None, "the file is empty", "give a file with a request on each line")
    if first.lstrip().startswith("{"):
        if '"requests"' in first and '"input_length"' not in first:
            hint = "play them with workload.sessions: {trace: FILE, users: 20}"
            raise source.error(1, "these are sessions, whose turns wait for answers", hint)
        return "mooncake"
    names = {_column(name) for name in first.split(",")}
    if {"contexttokens", "generatedtokens"} <= names:
        return "azure"
    if {"request_tokens", "response_tokens"} <= names:
        return "burstgpt"
    if all(names.intersection(PLAIN_COLUMNS[part]) for part in PLAIN_COLUMNS):
        return "csv"
    raise source.error(
        1,
        "cannot tell the format from the first line",
        f"set workload.format to one of {', '.join(reader.names())}",
    )


def json_object(text: str) -> dict[str, Any]:
    """Read a line as a JSON object, its numbers exactly."""
    try:
        fields = json.loads(text, parse_float=Decimal, parse_constant=_refuse_constant)
    except json.JSONDecodeError as failure:
        raise ValueProblem(f"not JSON: {failure.msg} at column {failure.colno}", ONE_OBJECT) from None
    except (ArithmeticError, RecursionError):
        raise ValueProblem(
            "not JSON that can be used: a number out of range, or too deeply nested", MEND
        ) from None
    if not isinstance(fields, dict):
        raise ValueProblem("not a JSON object", ONE_OBJECT)
    return fields


def _refuse_constant(name: str) -> Any:
    raise ValueProblem(f"{name} is not a number", MEND)


class _Columns(NamedTuple):
    """Where in a row the three needed values are, under which names, and what else there is."""

    places: tuple[int, int, int]
    names: tuple[str, str, str]
    extra: tuple[str, ...]


def _table(
    source: TraceFile, wanted: Mapping[str, Sequence[str]], at_ps: Callable[[str, str], int]
) -> Iterator[Row | BadRow]:
    """Yield the rows of a CSV file with a header."""
    rows = csv_module.reader(source.lines())
    columns = _find_columns(source, next(rows, []), wanted)
    at, given, made = columns.places
    for values in rows:
        if not values:
            continue
        try:
            if len(values) <= max(columns.places):
                raise ValueProblem(
                    f"only {len(values)} values in this row", "each row needs a value for each column"
                )
            yield Row(
                rows.line_num,
                at_ps(values[at].strip(), columns.names[0]),
                tokens(values[given].strip(), columns.names[1]),
                tokens(values[made].strip(), columns.names[2]),
                None,
                columns.extra,
            )
        except ValueProblem as bad:
            yield BadRow(rows.line_num, bad.problem, bad.hint or "")


def _find_columns(source: TraceFile, header: Sequence[str], wanted: Mapping[str, Sequence[str]]) -> _Columns:
    names = [_column(name) for name in header]
    places = []
    for part, aliases in wanted.items():
        found = next((alias for alias in aliases if alias in names), None)
        if found is None:
            raise source.error(
                1,
                f"no column for the {MEANING[part]}",
                f"name it {aliases[0]}; the header has: {', '.join(header) or 'nothing'}",
            )
        places.append(names.index(found))
    shown = tuple(header[place].strip() for place in places)
    extra = tuple(name.strip() for place, name in enumerate(header) if place not in places)
    return _Columns((places[0], places[1], places[2]), (shown[0], shown[1], shown[2]), extra)


def _column(name: str) -> str:
    return name.strip().strip('"').lower().replace(" ", "_")


def _seconds_ps(text: str, key: str) -> int:
    return instant_ps(text, key, PS_PER_S)


_CALENDAR = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d+))?\s*(?:(Z)|([+-])(\d\d):?(\d\d))?"
)


def _calendar_ps(text: str, key: str) -> int:
    """Read a calendar instant, taken as UTC where no offset is written, as ps since the year 1."""
    match = _CALENDAR.fullmatch(text)
    if match is None:
        raise ValueProblem(f"{key} is {text!r}, not a time", "write it as 2023-11-16 18:17:03.9799600")
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    fraction, _, sign, offset_hour, offset_minute = match.groups()[6:]
    try:
        days = date(year, month, day).toordinal()
    except ValueError as failure:
        raise ValueProblem(f"{key} is {text!r}: {failure}", "mend the date") from None
    seconds = days * 86_400 + hour * 3_600 + minute * 60 + second
    if sign:
        seconds -= int(f"{sign}1") * (int(offset_hour) * 3_600 + int(offset_minute) * 60)
    part_ps = int((Decimal(f"0.{fraction}") * PS_PER_S).to_integral_value()) if fraction else 0
    return seconds * PS_PER_S + part_ps
