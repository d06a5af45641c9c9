"""From results to a device file: the form of sim.config.device, filled in and written one row a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sim.calibrate.cases import StepCase, StepSet
from sim.calibrate.measure import Results
from sim.calibrate.meter import Facts
from sim.config.device import Device
from sim.config.dump import dump

OPERATORS = ("gemm", "attention_prefill", "attention_decode", "copies", "all_reduce")
ATTENTION = "cuDNN for prompts (a prefix apart, then joined), a paged Triton kernel for decode steps"
OTHER_FORMS = {"pcie", "nvl", "mig"}
NOTE = (
    "Random weights and tokens. CUDA graphs timed by CUDA events, so that the host is not in it; clocks and "
    "power limit as found. Operators: mean of several launches over operands that together exceed the L2."
)


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a file says about itself beside its numbers."""

    name: str
    catalogue: str | None
    date: str
    command: str
    source: str
    licence: str


def device_of(results: Results, facts: Facts, provenance: Provenance) -> Device:
    """The form that holds some results."""
    rows: dict[str, list[dict[str, Any]]] = {table: [] for table in OPERATORS}
    for case, summary in results.times:
        if not isinstance(case, StepCase):
            rows[case.table].append({**case.row(), **asdict(summary)})
    hardware = asdict(facts)
    software = hardware.pop("software")
    return Device.model_validate(
        {
            "sim": 1,
            "name": provenance.name,
            "description": f"measured on {facts.gpu}",
            "hardware": {"catalogue": provenance.catalogue, **hardware},
            "origin": {
                "date": provenance.date,
                "command": provenance.command,
                "seconds": results.seconds or None,
                "software": dict(software),
                "source": provenance.source,
                "licence": provenance.licence,
                "note": NOTE,
            },
            "load": [asdict(load) for load in results.load],
            **rows,
            "steps": _steps(results),
            "refused": [{"case": str(case), "reason": reason} for case, reason in results.refused],
            "left_out": [str(case) for case in results.left_out],
        }
    )


def _steps(results: Results) -> list[dict[str, Any]]:
    """The sets of steps, each with its tables."""
    sets: dict[StepSet, dict[str, list[dict[str, Any]]]] = {}
    for case, summary in results.times:
        if isinstance(case, StepCase):
            tables = sets.setdefault(case.of, {"prefill": [], "decode": [], "ragged": []})
            tables[case.table].append({**case.row(), **asdict(summary)})
    return [
        {
            "name": of.name,
            "model": of.shape.name,
            "weights": of.weights,
            "kv": of.kv,
            "tp": 1,
            "clock": "gpu",
            "page_tokens": of.page_tokens,
            "attention": ATTENTION,
            **tables,
        }
        for of, tables in sets.items()
    ]


def save(device: Device, path: Path) -> None:
    """Write a device file at once, so that nobody finds half of it."""
    beside = path.with_name(f"{path.name}.part")
    beside.write_text(dump(device, path.parent, in_rows=True), encoding="utf-8")
    beside.replace(path)


def catalogue_name(gpu: str, known: Sequence[str]) -> str | None:
    """The entry of the catalogue that a driver's name of a GPU stands for; None where that is not certain.

    Every part of the entry's name is a word of the driver's (SXM with or without its number), and no mark of
    another form is left over; of several entries the one with most parts.
    """
    words = gpu.lower().replace("-", " ").split()
    words = ["sxm" if word.startswith("sxm") else word for word in words]
    fits = [
        parts
        for parts in (name.split("-") for name in known)
        if set(parts) <= set(words) and not (set(words) & OTHER_FORMS) - set(parts)
    ]
    most = max(map(len, fits), default=0)
    longest = [parts for parts in fits if len(parts) == most]
    return "-".join(longest[0]) if len(longest) == 1 else None
