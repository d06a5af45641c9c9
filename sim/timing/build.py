"""The one place where a placement becomes a timing provider."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from sim.catalog.measurements import measurement_file
from sim.config.device import Device
from sim.config.load import load_form
from sim.config.pool import Timing as Source
from sim.timing.measured import measured
from sim.timing.placement import Placement
from sim.timing.roofline import Roofline
from sim.timing.silicon import silicon_file
from sim.timing.timing import Timing


def roofline(placement: Placement) -> Timing:
    """Make times from a roofline of the model's operators."""
    return Roofline(placement)


def timing_of(placement: Placement, source: Source) -> Timing:
    """The times that a scenario asks for; refuses a table that does not have them."""
    if source.kind == "silicon":
        return measured(device_of(silicon_file(placement), 0), placement, roofline)
    if source.table is None:
        return roofline(placement)
    path = measurement_file(source.table)
    changed_ns = path.stat().st_mtime_ns if path.is_file() else 0
    return measured(device_of(path, changed_ns), placement, roofline)


@cache
def device_of(path: Path, changed_ns: int) -> Device:
    """A device file as it was at an instant; pools that share one read it once."""
    return load_form(Device, path)
