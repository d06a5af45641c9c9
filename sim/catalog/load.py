"""The catalogue as mappings of entries by name; a file is read when its first entry is asked for."""

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
    """The entries of one file by name, in its order; an unknown name is answered with the nearest."""

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

    def _load(self) -> dict[str, E]:
        page = Page(self.path)
        entries: dict[str, E] = {}
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
    """All parts, read from the YAML files of a folder."""

    def __init__(self, folder: Path) -> None:
        self.gpus = Shelf(folder / "gpus.yaml", "GPU", Gpu.read)
        self.nodes = Shelf(folder / "nodes.yaml", "node", Node.read)
        self.links = Shelf(folder / "links.yaml", "link", Link.read)
        self.models = Shelf(folder / "models.yaml", "model", Model.read)
        self.engines = Shelf(folder / "engines.yaml", "engine", Engine.read)
        self.efficiencies = Shelf(folder / "efficiencies.yaml", "architecture", Efficiency.read)
        self.sources = Shelf(folder / "sources.yaml", "source", Source.read)


@cache
def load_catalog() -> Catalog:
    """Return the catalogue that comes with the simulator; the same object every time."""
    return Catalog(Path(__file__).parent)
