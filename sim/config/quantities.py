"""Types of values that carry a unit or stand for a file: text in YAML, inner values in Python.

Each is written back as canonical text with its unit. Inner units are those of sim.base.dimensions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, SerializationInfo, WithJsonSchema

from sim.base import units
from sim.base.dimensions import DIMENSIONS, PS_PER_S
from sim.base.errors import ValueProblem, shown
from sim.config import paths
from sim.config.marks import Written as Located
from sim.config.slo import SloLimit

LONGEST_PS = 100 * 86400 * PS_PER_S  # picoseconds must fit a 64-bit integer, sums of some included


def quantity(
    value: object, dimension: str, least: float = 0, most: float | None = None, is_open: bool = False
) -> units.Value:
    """The inner value of a text, within bounds; `is_open` excludes the lower one."""
    wanted = DIMENSIONS[dimension]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueProblem(
            f"must be {wanted.meaning}, not {shown(value)}",
            f"write a number and a unit, such as {wanted.example}",
        )
    number = units.parse(value if isinstance(value, str) else repr(value), dimension)
    if number < least or (is_open and number == least):
        bound = f"{'above' if is_open else 'of at least'} {units.text(type(number)(least), dimension)}"
        raise ValueProblem(
            f"'{value}' is too small", f"write {wanted.meaning} {bound}, such as {wanted.example}"
        )
    if most is not None and number > most:
        raise ValueProblem(
            f"'{value}' is too large", f"write at most {units.text(type(number)(most), dimension)}"
        )
    return number


def written(dimension: str) -> PlainSerializer:
    """How the inner value of a dimension is written."""
    return PlainSerializer(partial(units.text, dimension=dimension), return_type=str)


def described(dimension: str) -> WithJsonSchema:
    """What an editor should know about a dimension."""
    known = DIMENSIONS[dimension]
    names = "|".join(re.escape(name) for name in sorted(known.units, key=lambda name: (-len(name), name)))
    pattern = rf"^ *[0-9.]+([eE][+-]?[0-9]+)? *({names}) *$"
    return WithJsonSchema({"type": "string", "pattern": pattern, "examples": [known.example]})


def reader(dimension: str, **bounds: Any) -> BeforeValidator:
    """How text of a dimension is read."""
    read: Callable[[object], units.Value] = partial(quantity, dimension=dimension, **bounds)
    return BeforeValidator(read)


Duration = Annotated[int, reader("time", most=LONGEST_PS), written("time"), described("time")]
PositiveDuration = Annotated[
    int, reader("time", most=LONGEST_PS, is_open=True), written("time"), described("time")
]
Size = Annotated[int, reader("size"), written("size"), described("size")]
BytesPerSecond = Annotated[float, reader("rate", is_open=True), written("rate"), described("rate")]
PerSecond = Annotated[float, reader("frequency", is_open=True), written("frequency"), described("frequency")]
Fraction = Annotated[float, reader("fraction", most=1), written("fraction"), described("fraction")]
PositiveFraction = Annotated[
    float, reader("fraction", most=1, is_open=True), written("fraction"), described("fraction")
]
Power = Annotated[float, reader("power"), written("power"), described("power")]
Price = Annotated[float, reader("price"), written("price"), described("price")]
ComputeRate = Annotated[float, reader("compute", is_open=True), written("compute"), described("compute")]
Length = Annotated[float, reader("length"), written("length"), described("length")]


def as_written(text: str) -> Any:
    """A default as a user would write it; the form reads it as it reads a file."""
    return text


def file_path(value: object) -> str:
    """The absolute path of a file named in a form."""
    return str(paths.resolve(text_of(value)))


def trace_source(value: object) -> str:
    """The absolute path of a trace file, or the name of a trace to fetch."""
    return paths.resolve_name(text_of(value))


def model_source(value: object) -> str:
    """The absolute path of a config.json, which any name with that ending is, or the name of a model."""
    if not isinstance(value, str):
        word = shown(value)
        raise ValueProblem(f"must be text, not {word}", f"put it in quotes: '{word}'")
    return str(paths.resolve(value)) if value.lower().endswith(".json") else str(value)


def policy_source(value: object) -> str:
    """The name of a policy as it is; of `module:name` the absolute path, if that is a file beside this one.

    `module` stands for `module.py`; what is no file there is looked for on the Python path, elsewhere.
    """
    if not isinstance(value, str):
        word = shown(value)
        raise ValueProblem(f"must be text, not {word}", f"put it in quotes: '{word}'")
    module, colon, name = value.rpartition(":")
    if not colon:
        return str(value)
    file = module if module.endswith(".py") else f"{module}.py"
    path = paths.resolve(file, value.source if isinstance(value, Located) else None)
    return f"{path}:{name}" if file == module or path.is_file() else str(value)


def write_policy(policy: str, info: SerializationInfo) -> str:
    """A policy, its file as written in the folder that the context gives."""
    module, colon, name = policy.rpartition(":")
    return f"{write_path(module, info)}:{name}" if colon and module.endswith(".py") else policy


def text_of(value: object) -> str:
    """A path as text."""
    if isinstance(value, Path):
        return str(value)
    if not isinstance(value, str):
        raise ValueProblem("must be the path of a file", f"put it in quotes: '{value}'")
    return value


def write_path(path: str, info: SerializationInfo) -> str:
    """A path as written in the folder that the context gives, absolute without one."""
    folder = (info.context or {}).get("relative_to")
    return path if folder is None else paths.relative(path, folder)


WRITTEN_PATH = PlainSerializer(write_path, return_type=str)
PATH_SCHEMA = WithJsonSchema({"type": "string"})
FilePath = Annotated[str, BeforeValidator(file_path), WRITTEN_PATH, PATH_SCHEMA]
TraceSource = Annotated[str, BeforeValidator(trace_source), WRITTEN_PATH, PATH_SCHEMA]
TableSource = TraceSource
"""The absolute path of a device file, or the name of a table of the catalogue."""
ModelSource = Annotated[str, BeforeValidator(model_source), WRITTEN_PATH, PATH_SCHEMA]
PolicySource = Annotated[
    str, BeforeValidator(policy_source), PlainSerializer(write_policy, return_type=str), PATH_SCHEMA
]

__all__ = [
    "BytesPerSecond",
    "ComputeRate",
    "Duration",
    "FilePath",
    "Fraction",
    "Length",
    "ModelSource",
    "PerSecond",
    "PolicySource",
    "PositiveDuration",
    "PositiveFraction",
    "Power",
    "Price",
    "Size",
    "SloLimit",
    "TableSource",
    "TraceSource",
    "as_written",
]
