"""The device files that come with the simulator, by name: measured tables that a scenario may name.

A device file (sim.config.device) holds measurements. It is read by those who want its numbers; here it is
only found.
"""

from __future__ import annotations

from pathlib import Path

from sim.base.errors import UnknownNameError

FOLDER = Path(__file__).parent / "measured"


def known_measurements() -> dict[str, Path]:
    """Names and files, in order of names."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.yaml"), key=lambda path: path.stem)}


def measurement_file(name: str) -> Path:
    """The file of a name, or of a path as it is."""
    if "/" in name or "\\" in name or Path(name).suffix in {".yaml", ".yml", ".json"}:
        return Path(name)
    known = known_measurements()
    if name not in known:
        raise UnknownNameError("table of measurements", name, known)
    return known[name]
