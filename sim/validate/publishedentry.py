"""A published number: what it is, of what, and where it stands.

Files: CSV with the columns below, or YAML, a list of mappings with the same keys. `metric`, `hardware`,
`parallelism` and `workload` are texts as their sources have them; what can be simulated is read from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sim.base.errors import ConfigError
from sim.validate.rows import rows_of

TEXTS = (
    "metric",
    "unit",
    "hardware",
    "model",
    "precision",
    "parallelism",
    "workload",
    "source_title",
    "source_url",
)
NEEDED = ("id", "value", *TEXTS)
HINT = f"give CSV with the columns {', '.join(NEEDED)}, or a YAML list of mappings with these keys"
UNITS = {
    "tokens/s": "throughput",
    "TFLOPS": "throughput",
    "req/s": "throughput",
    "GB/s": "bandwidth",
    "GiB/s": "bandwidth",
    "Gbit/s": "bandwidth",
    "TiB/s": "bandwidth",
    "ms": "latency",
    "us": "latency",
    "s": "latency",
    "percent": "ratio",
    "ratio": "ratio",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One published number; `gpus` is None where its source does not say."""

    id: str
    value: float
    gpus: int | None
    metric: str
    unit: str
    hardware: str
    model: str
    precision: str
    parallelism: str
    workload: str
    source_title: str
    source_url: str

    @property
    def kind(self) -> str:
        """Which of our metrics it is, by its unit and, for times, by its name."""
        words = self.metric.casefold()
        if "ttft" in words and "s" in self.plain_unit:
            return "ttft"
        if "tpot" in words:
            return "tpot"
        return next((kind for unit, kind in UNITS.items() if self.plain_unit == unit), "throughput")

    @property
    def plain_unit(self) -> str:
        """The unit without what is said about it, such as `(at least)`."""
        bare = self.unit.partition(" (")[0]
        return "tokens/s" if "tokens/s" in bare else bare.partition(" ")[0]


def entries_of(path: Path) -> list[Entry]:
    """The entries of a file."""
    if path.suffix in {".yaml", ".yml"}:
        return list(_of_yaml(path))
    found = []
    for row in rows_of(path, NEEDED):
        gpus = row.count("gpus") if row.text("gpus") else None
        texts = {key: row.text(key) for key in TEXTS}
        found.append(Entry(id=row.text("id"), value=row.number("value"), gpus=gpus, **texts))
    return found


def _of_yaml(path: Path) -> Iterator[Entry]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        given = yaml.load(path.read_text(encoding="utf-8"), Loader=loader)  # a safe loader, whichever it is
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = (None, None) if mark is None else (mark.line + 1, mark.column + 1)
        raise ConfigError(str(path), *place, problem=str(error.problem), hint=HINT) from None
    if not isinstance(given, list):
        raise ConfigError(str(path), 1, 1, problem="is not a list", hint=HINT)
    for number, item in enumerate(given, 1):
        if not isinstance(item, dict):
            raise ConfigError(str(path), None, None, problem=f"item {number} is not a mapping", hint=HINT)
        yield _entry(path, number, item)


def _entry(path: Path, number: int, item: Mapping[str, Any]) -> Entry:
    for key in NEEDED:
        if key not in item:
            raise ConfigError(str(path), None, None, key=f"item {number}", problem=f"has no {key}", hint=HINT)
    value = item["value"]
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        problem = f"{value!r} is not a number above 0"
        raise ConfigError(str(path), None, None, key=f"{item['id']}: value", problem=problem, hint=HINT)
    gpus = item.get("gpus")
    return Entry(
        id=str(item["id"]),
        value=float(value),
        gpus=gpus if isinstance(gpus, int) else None,
        **{key: str(item[key]) for key in TEXTS},
    )
