"""The catalogue as mappings of entries by name; files are read when their first entry is asked for.

A shelf is one file, such as `links.yaml`, or the files of a folder, such as `gpus/`, one for each family.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Generic, TypeVar

from sim.base.errors import UnknownNameError
from sim.catalog.efficiency import Efficiency
from sim.catalog.engine import Engine
from sim.catalog.entry import Entry
from sim.catalog.fields import Fields
from sim.catalog.gpu import Gpu
from sim.catalog.link import Link
from sim.catalog.model import Model
from sim.catalog.node import Node
from sim.catalog.page import Page
from sim.catalog.source import Source

E = TypeVar("E", bound=Entry)


class Shelf(Mapping[str, E], Generic[E]):
    """Entries by name, in the order of their files; an unknown name is answered with the nearest.

    `path` is where they are, without the ending: a file, a folder, or both.
    """

    def __init__(self, path: Path, kind: str, read: Callable[[Fields], E]) -> None:
        self.path, self.kind = path, kind
        self._read = read
        self._entries: dict[str, E] | None = None

    def __getitem__(self, name: str) -> E:
        entries = self._loaded()
        if name not in entries:
            raise UnknownNameError(self.kind, name, entries)
        return entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._loaded()

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaded())

    def __len__(self) -> int:
        return len(self._loaded())

    def _loaded(self) -> dict[str, E]:
        if self._entries is None:
            self._entries = self._load()
        return self._entries

    def _files(self) -> list[Path]:
        file = self.path.with_suffix(".yaml")
        folder = sorted(self.path.glob("*.yaml"))
        return [file, *folder] if file.exists() or not folder else folder

    def _load(self) -> dict[str, E]:
        entries: dict[str, E] = {}
        for page in map(Page, self._files()):
            for node in page.entries():
                fields = Fields(page, node)
                entry = self._read(fields)
                fields.close()
                if entry.name in entries:
                    raise page.error(
                        node, entry.name, f"a second {self.kind} of this name", "rename one of the two"
                    )
                entries[entry.name] = entry
        return entries


class Catalog:
    """All parts, read from the YAML files in and below a folder."""

    def __init__(self, folder: Path) -> None:
        self.gpus = Shelf(folder / "gpus", "GPU", Gpu.read)
        self.nodes = Shelf(folder / "nodes", "node", Node.read)
        self.links = Shelf(folder / "links", "link", Link.read)
        self.models = Shelf(folder / "models", "model", Model.read)
        self.engines = Shelf(folder / "engines", "engine", Engine.read)
        self.efficiencies = Shelf(folder / "efficiencies", "architecture", Efficiency.read)
        self.sources = Shelf(folder / "sources", "source", Source.read)


@cache
def load_catalog() -> Catalog:
    """Return the catalogue that comes with the simulator; the same object every time."""
    return Catalog(Path(__file__).parent)
