"""Axes: which key of a scenario takes which values, as `--over KEY=VALUES` says it.

Values are apart by commas, `router.policy=least_loaded,prefix_aware`, or come in equal steps,
`workload.rate=20..200:20 req/s`, both ends included where the steps meet them. A comma inside brackets or
quotes does not part. Each value is YAML, as after `--set`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product

from sim.base.errors import ConfigError
from sim.config.overrides import Override

NUMBER = r"[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
RANGE = re.compile(rf"\s*(?P<low>{NUMBER})\s*\.\.\s*(?P<high>{NUMBER})\s*:\s*(?P<step>{NUMBER})(?P<unit>.*)")
MOST_STEPS = 10_000
EXAMPLE = (
    "write it as in --over workload.rate=20..200:20 req/s or --over router.policy=least_loaded,prefix_aware"
)


@dataclass(frozen=True, slots=True)
class Axis:
    """A key, and the overrides that set it to one value after the other; `labels` are how these are shown."""

    key: str
    overrides: tuple[Override, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Point:
    """One value for each axis."""

    labels: Mapping[str, str]
    overrides: tuple[Override, ...]


def axis_of_text(setting: str) -> Axis:
    """The axis that KEY=VALUES says."""
    key, equals, text = setting.partition("=")
    key = key.strip()
    if not equals or not all(key.split(".")):
        raise _mistake(setting, "is not KEY=VALUES")
    found = RANGE.fullmatch(text)
    labels = _steps(setting, found) if found else [part.strip() for part in _apart(text)]
    if not all(labels):
        raise _mistake(setting, "has a value with nothing in it")
    overrides = tuple(Override.of_text(f"{key}={label}", "--over") for label in labels)
    return Axis(key, overrides, tuple(labels))


def axis_of_values(key: str, values: Iterable[object]) -> Axis:
    """An axis of Python values."""
    overrides = tuple(Override.of_value(key, value) for value in values)
    return Axis(key, overrides, tuple(str(override.value) for override in overrides))


def points(axes: Sequence[Axis]) -> Iterator[Point]:
    """Every combination of values, the last axis turning fastest."""
    if any(axis.key == "run.seed" for axis in axes):
        hint = "use --seeds N: each point is then played with N seeds, and the intervals come from them"
        raise ConfigError("--over run.seed", None, None, problem="the seed is no axis", hint=hint)
    for chosen in product(*[range(len(axis.labels)) for axis in axes]):
        pairs = list(zip(axes, chosen, strict=True))
        yield Point(
            {axis.key: axis.labels[i] for axis, i in pairs}, tuple(axis.overrides[i] for axis, i in pairs)
        )


def _steps(setting: str, found: re.Match[str]) -> list[str]:
    low, high, step = (Decimal(found[name]) for name in ("low", "high", "step"))
    if not step or high < low:
        raise _mistake(setting, "has a range that leads nowhere")
    count = int((high - low) / step) + 1
    if count > MOST_STEPS:
        raise _mistake(setting, f"has {count} values")
    unit = found["unit"].strip()
    return [f"{(low + i * step).normalize():f} {unit}".rstrip() for i in range(count)]


def _apart(text: str) -> list[str]:
    """Values apart by commas, but not inside brackets or quotes."""
    parts, depth, quote = [""], 0, ""
    for sign in text:
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign in "[{":
            depth += 1
        elif sign in "]}":
            depth -= 1
        elif sign == "," and not depth:
            parts.append("")
            continue
        parts[-1] += sign
    return parts


def _mistake(setting: str, problem: str) -> ConfigError:
    return ConfigError(f"--over {setting}", None, None, problem=problem, hint=EXAMPLE)
