"""`sim list`: what may be named in a scenario or a topology, one line each, or one entry with its sources."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from sim.base.errors import UnknownNameError
from sim.base.registry import Registry
from sim.catalog.load import load_catalog
from sim.report.signs import plainly

Row = tuple[str, str]
SHELVES: tuple[str, ...] = ("gpus", "nodes", "links", "models", "engines")
REGISTRIES: dict[str, tuple[str, str]] = {
    "routers": ("sim.serving.routers", "router"),
    "batchings": ("sim.serving.batching", "batching"),
    "orders": ("sim.serving.order", "order"),
    "evictions": ("sim.kvpool.eviction", "eviction"),
    "readers": ("sim.workload.readers", "reader"),
    "session-formats": ("sim.workload.sessiontrace", "session_format"),
    "builders": ("sim.topology.builders", "builder"),
}
KINDS: dict[str, str] = {
    "gpus": "for nodes",
    "nodes": "for `type:` in a topology",
    "links": "for `link:` in a topology",
    "models": "for `model:` in a scenario",
    "engines": "for `engine:` in a scenario",
    "measurements": "for `timing.table:` in a scenario, as of `sim calibrate`",
    "topologies": "for `topology:` in a scenario",
    "builders": "for `kind:` of a fabric in a topology",
    "routers": "for `router:` in a scenario",
    "batchings": "for `batching:` of a pool in a scenario",
    "orders": "for `order:` of a pool in a scenario",
    "evictions": "for `kv_pool.eviction:` in a scenario",
    "traces": "for `workload.trace:`, fetched by `sim trace get`",
    "readers": "for `workload.format:`",
    "session-formats": "for `workload.sessions.format:`",
}
SINGULAR: dict[str, str] = {
    "measurement": "measurements",
    "router": "routers",
    "batching": "batchings",
    "order": "orders",
    "eviction": "evictions",
    "reader": "readers",
    "session-format": "session-formats",
    "trace": "traces",
    "topology": "topologies",
    "builder": "builders",
}
TOPOLOGY_FOLDERS: tuple[Path, ...] = (Path("topologies"), Path(__file__).parents[2] / "topologies")


def list_kinds() -> None:
    """Print what can be listed."""
    _print_rows(list(KINDS.items()))


def list_kind(kind: str) -> None:
    """Print the names of a kind, each with a line about it; GPUs as a table."""
    if kind == "gpus":
        from sim.cli.parts import list_gpus  # noqa: PLC0415 - only here

        list_gpus()
    else:
        _print_rows(_rows(kind))


def _print_rows(rows: Sequence[Row]) -> None:
    width = max((len(name) for name, _ in rows), default=0)
    for name, about in rows:
        _print(f"{name:<{width}}  {about}".rstrip())


def _rows(kind: str) -> list[Row]:
    if kind in SHELVES:
        return [(entry.name, entry.summary) for entry in getattr(load_catalog(), kind).values()]
    if kind in REGISTRIES:
        registry = _registry(kind)
        return [(name, registry.summary(name)) for name in registry.names()]
    if kind == "topologies":
        return _topologies()
    if kind == "measurements":
        from sim.cli.measurements import descriptions  # noqa: PLC0415 - only here

        return descriptions()
    if kind == "traces":
        from sim.workload.library import known_traces  # noqa: PLC0415 - only here

        return [(trace.name, trace.about) for trace in known_traces().values()]
    raise UnknownNameError("list", kind, KINDS)


def _registry(kind: str) -> Registry[Any]:
    module, name = REGISTRIES[kind]
    registry: Registry[Any] = getattr(import_module(module), name)
    return registry


def _topologies() -> list[Row]:
    """Topology files in ./topologies, and in the checkout of the simulator."""
    import yaml  # noqa: PLC0415 - only here

    rows: dict[Path, Row] = {}
    for folder in TOPOLOGY_FOLDERS:
        for path in sorted(folder.glob("*.yaml")):
            if path.resolve() in rows:
                continue  # both folders are one
            tree = yaml.load(path.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
            about = tree.get("description", "") if isinstance(tree, dict) else ""
            shown = path if folder == TOPOLOGY_FOLDERS[0] else path.resolve()
            rows[path.resolve()] = (str(shown), about)
    return list(rows.values())


def show_one(kind: str, name: str, as_json: bool = False) -> None:
    """Print one entry: its values with their sources, or its documentation. A kind may be in the singular."""
    from sim.cli.parts import SHELF_OF, known_kind, show_part  # noqa: PLC0415 - only here

    part, kinds = known_kind(kind), SINGULAR.get(kind, kind)
    if part is not None:
        show_part(part, name, as_json)
    elif kinds in REGISTRIES:
        _print(inspect.getdoc(_registry(kinds)[name]) or "")
    elif kinds == "traces":
        _show_trace(name)
    elif kinds == "measurements":
        from sim.cli.measurements import describe  # noqa: PLC0415 - slow to import

        _print("\n".join(describe(name)))
    elif kinds == "topologies":
        paths = {Path(path).stem: Path(path) for path, _ in _rows(kinds)}
        if name not in paths:
            raise UnknownNameError("topology", name, paths)
        _print(paths[name].read_text(encoding="utf-8").rstrip())
    else:
        raise UnknownNameError("kind", kind, [*SHELF_OF, *SINGULAR])


def _show_trace(name: str) -> None:
    from sim.workload.library import known_traces  # noqa: PLC0415

    known = known_traces()
    if name not in known:
        raise UnknownNameError("trace", name, known)
    trace = known[name]
    _print(f"{trace.name}: {trace.about}\n  {trace.source}, {trace.licence}\n  {trace.url}")


def _print(text: str) -> None:
    try:
        print(text)
    except UnicodeEncodeError:
        print(plainly(text))
