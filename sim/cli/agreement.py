"""`sim validate --plot FOLDER`: predicted against measured, a picture for each set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from sim.report.agreement import save_agreement
from sim.validate.comparison import Comparisons
from sim.validate.picture import figures_of


def save_agreements(found: Sequence[Comparisons], folder: Path) -> Iterator[Path]:
    """Draw each set into a folder, and give the files."""
    folder.mkdir(parents=True, exist_ok=True)
    for each in found:
        path = folder / f"{each.name}.png"
        save_agreement(figures_of(each), path)
        yield path
