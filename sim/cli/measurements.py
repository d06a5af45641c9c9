"""`sim list measurements`: the measured tables that come along, or one of them with what it is good for."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from pathlib import Path
from textwrap import wrap

import yaml

from sim.base.errors import SimError, UnknownNameError
from sim.catalog.load import load_catalog
from sim.catalog.measurements import known_measurements
from sim.config.device import Device, Steps
from sim.config.load import load_form

LABEL_WIDTH, NOTE_WIDTH = 10, 90


def descriptions() -> list[tuple[str, str]]:
    """Each table with a line about it, without reading its numbers."""
    return [(name, _description(path)) for name, path in known_measurements().items()]


def _description(path: Path) -> str:
    head = path.read_text(encoding="utf-8").partition("\nhardware:")[0]
    return str(yaml.safe_load(head)["description"])


def describe(name: str) -> list[str]:
    """One table: on what, by whom, how, and how well its coefficients fit it."""
    known = known_measurements()
    if name not in known:
        raise UnknownNameError("table of measurements", name, known)
    device = load_form(Device, known[name])
    lines = [f"{device.name}: {device.description}"]
    for label, texts in _parts(device):
        for text in texts:
            lines.append(f"  {label:<{LABEL_WIDTH}}{text}")
            label = ""  # noqa: PLW2901 - said once
    return lines


def _parts(device: Device) -> Iterator[tuple[str, list[str]]]:
    hardware, origin = device.hardware, device.origin
    gpus = f"{hardware.gpus} x {hardware.gpu}" if hardware.gpus > 1 else hardware.gpu
    details = {
        "at most {} MHz": hardware.sm_clock_mhz,
        "memory {} MHz": hardware.memory_clock_mhz,
        "power limit {:g} W": hardware.power_limit_w,
    }
    known = [text.format(value) for text, value in details.items() if value is not None]
    yield "hardware", [", ".join([gpus, *known])]
    yield "measured", [f"{origin.date} by {origin.source}; licence {origin.licence}", origin.command]
    yield "software", [", ".join(f"{name} {version}" for name, version in origin.software.items())]
    tables: dict[str, Sized] = {
        "GEMM": device.gemm,
        "prefill attention": device.attention_prefill,
        "decode attention": device.attention_decode,
        "copies": device.copies,
        "all-reduce": device.all_reduce,
    }
    yield "rows", [", ".join(f"{name} {len(rows)}" for name, rows in tables.items() if rows)]
    for steps in device.steps:
        yield "steps", list(_steps(device, steps))
    if origin.note:
        yield "note", wrap(origin.note, NOTE_WIDTH)


def _steps(device: Device, steps: Steps) -> Iterator[str]:
    """What a set of steps covers, and how far the coefficients made of it lie from it."""
    from sim.timing import Shard, place, roofline  # noqa: PLC0415 - slow to import
    from sim.timing.measured import measured  # noqa: PLC0415 - slow to import

    yield (
        f"{steps.model}, weights {steps.weights}, kv {steps.kv}, tp {steps.tp}, time of the "
        + ("GPU alone" if steps.engine is None else f"wall clock under engine {steps.engine}")
    )
    catalog = load_catalog()
    node = next((node.name for node in catalog.nodes.values() if node.gpu == device.hardware.catalogue), None)
    if node is None:
        yield "no node of the catalogue has this GPU"
        return
    shard = Shard(catalog.models[steps.model], steps.weights, steps.kv, steps.tp)
    try:
        timing = measured(device, place(catalog, shard, node, steps.engine or "reference"), roofline)
    except SimError as unsupported:
        yield str(unsupported).partition("\n")[0]
        return
    most = timing.beyond.limits
    tokens = max(row.batch * row.context for row in steps.decode)
    yield (
        f"prefill to {most.new:,} new and {most.cached:,} cached tokens, decode to {most.batch} sequences, "
        f"{most.context:,} tokens in one and {tokens:,} in all"
    )
    named = {
        "prefill": timing.prefill_error,
        "decode": timing.decode_error,
        "unequal contexts": timing.ragged_error,
    }
    yield "coefficients are off by " + ", ".join(
        f"{error.median:.1%} (worst {error.worst:.1%}) in {name}"
        for name, error in named.items()
        if error.points
    )
