"""`sim topo`: a topology's tree, figures, ways, drawing, and how it differs from another.

Each verb makes plain figures, which are written as JSON or shown as a screen.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.base.errors import ConfigError, UnknownNameError, listed, suggest
from sim.catalog import load_catalog
from sim.cli.files import nearest, topologies
from sim.config.filekind import is_scenario
from sim.config.load import load_topology
from sim.config.topology import Topology
from sim.report import topology as words
from sim.report.text import Line, show
from sim.results.store import json_text
from sim.results.words import NOTHING
from sim.topology.cluster import Cluster, build
from sim.topology.measure import measure
from sim.topology.outline import outline
from sim.topology.place import HINT, place

if TYPE_CHECKING:
    from sim.results.run import Run

Figures = dict[str, Any]
_ABOUT = ("sim", "name", "description", "source")


def find(wanted: str) -> Path:
    """The file of a topology: a path, or the name of one in ./topologies or the simulator's own."""
    path, known = Path(wanted), topologies()
    if path.is_file():
        if is_scenario(path):
            hint = "name its topology, or use `sim topo show TOPOLOGY --scenario SCENARIO`"
            raise ConfigError(wanted, None, None, problem="a scenario, not a topology", hint=hint)
        return path
    if wanted in known:
        return known[wanted]
    if path.is_dir():
        hint = "name a topology file in it, or one of `sim list topologies`"
        raise ConfigError(wanted, None, None, problem="is a folder, not a file", hint=hint)
    name = path.stem if path.suffix == ".yaml" else wanted
    near = None if suggest(name, known) else nearest(path, ())
    if near is not None:
        raise ConfigError(wanted, None, None, problem="no such file", hint=f"did you mean '{near}'?")
    raise UnknownNameError("topology", name, known)


def load(wanted: str) -> tuple[Topology, Cluster]:
    """A topology by path or name, checked."""
    form = load_topology(find(wanted))
    return form, build(form, load_catalog())


def show_tree(wanted: str, scenario: Path | None, as_json: bool) -> None:
    """`sim topo show`: the parts, equal ones folded, and where replicas sit."""
    form, cluster = load(wanted)
    figures = described(form, cluster)
    if scenario is not None:
        from sim.cli.placement import placement  # noqa: PLC0415 - slow to import

        figures["placement"] = placement(cluster, scenario)
    _answer(figures, words.tree_screen, as_json)


def draw_topology(wanted: str, out: Path | None, run: Path | None) -> None:
    """`sim topo draw`: a picture in a file, whose name goes to stdout."""
    from sim.report.draw import draw, save_drawing  # noqa: PLC0415 - slow to import

    form, cluster = load(wanted)
    path = out or Path(f"{form.name}.png")
    loads = None
    if run is not None:
        from sim.report.loads import loads_of  # noqa: PLC0415

        loads = loads_of(_run_on(find(wanted), run))
    graph = cluster.graph if cluster.fabric else None
    save_drawing(draw(described(form, cluster), graph, loads), path)
    show([[(str(path), "")]], sys.stdout)


def _run_on(topology: Path, folder: Path) -> Run:
    """The run in a folder, which must be one on this topology: its file is told by name or contents."""
    from sim.results.provenance import file_sha256  # noqa: PLC0415 - slow to import
    from sim.results.run import SUMMARY_FILE, open_run  # noqa: PLC0415

    if not (folder / SUMMARY_FILE).is_file():
        hint = "name a folder that `sim run` has saved"
        raise ConfigError("--run", None, None, problem=f"there is no run in {folder}", hint=hint)
    run = open_run(folder)
    files = run.provenance["files"]
    if topology.name not in files and file_sha256(topology) not in files.values():
        problem = f"the run in {folder} was not on {topology.name}: its files are {listed(sorted(files))}"
        raise ConfigError("--run", None, None, problem=problem, hint="draw the topology of that run")
    return run


def show_stats(wanted: str, as_json: bool) -> None:
    """`sim topo stats`: switches, cables, bisection bandwidth, oversubscription and hops."""
    _answer(figures_of(*load(wanted)), words.stats_screen, as_json)


def show_path(wanted: str, ends: Sequence[str], as_json: bool) -> None:
    """`sim topo path`: the way between two nodes or GPUs."""
    from sim.cli.way import way  # noqa: PLC0415 - slow to import

    _, cluster = load(wanted)
    source, target = (place(cluster, end) for end in _two(ends))
    _answer(asdict(way(cluster, source, target)), words.path_screen, as_json)


def show_difference(one: str, other: str, as_json: bool) -> None:
    """`sim topo diff`: keys and figures in which two topologies differ."""
    (form, cluster), (form_after, cluster_after) = load(one), load(other)
    figures = {
        "names": [form.name, form_after.name],
        "keys": _differences(dict(_keys(form)), dict(_keys(form_after))),
        "figures": _differences(
            words.facts(figures_of(form, cluster)), words.facts(figures_of(form_after, cluster_after))
        ),
    }
    _answer(figures, words.diff_screen, as_json)


def figures_of(form: Topology, cluster: Cluster) -> Figures:
    """All figures of a topology, as JSON has them."""
    figures = asdict(measure(cluster))
    if form.fabric is not None:
        figures["fabric"]["routing"] = form.fabric.routing.kind
    return figures


def described(form: Topology, cluster: Cluster) -> Figures:
    """The figures of a topology with its parts, its description and its sources."""
    figures = figures_of(form, cluster)
    parts = [asdict(part) for part in outline(cluster)]
    return figures | {"description": form.description, "source": list(form.source), "parts": parts}


def _two(ends: Sequence[str]) -> list[str]:
    """The two ends among words, of which `gpu 3` may be one or two."""
    found: list[str] = []
    for word in ends:
        if word.startswith("--"):
            hint = "it has --json and --debug"
            raise ConfigError("sim topo path", None, None, problem=f"no option {word}", hint=hint)
        if found and found[-1].lower() == "gpu":
            found[-1] = f"gpu {word}"
        else:
            found.append(word)
    if len(found) != 2:
        raise ConfigError("sim topo path", None, None, problem=f"needs two ends, not {len(found)}", hint=HINT)
    return [end.lower() if end.lower().startswith("gpu") else end for end in found]


def _keys(form: Topology) -> Iterator[tuple[str, str]]:
    """The values of a file by dotted key, as they would be written; without what only describes it."""
    values = form.model_dump(exclude_none=True)
    return _flat({key: value for key, value in values.items() if key not in _ABOUT}, "")


def _flat(value: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flat(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            is_line = path != "nodes" and isinstance(item, Mapping)
            yield from [(f"{path}.{i}", _line(item))] if is_line else _flat(item, f"{path}.{i}")
    else:
        yield path, str(value).lower() if isinstance(value, bool) else str(value)


def _line(item: Mapping[str, object]) -> str:
    """A switch or a cable on one line."""
    return ", ".join(f"{key} {value}" for key, value in item.items())


def _differences(one: Mapping[str, str], other: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """What differs between two mappings; a dash where one of them has nothing."""
    keys = dict.fromkeys([*one, *other])
    pairs = {key: (one.get(key, NOTHING), other.get(key, NOTHING)) for key in keys}
    return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


def _answer(figures: Figures, screen: Any, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json_text(figures))
        return
    lines: list[Line] = screen(figures)
    show(lines, sys.stdout)
