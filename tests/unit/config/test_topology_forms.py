"""What a topology file may say: ends of cables, and the keys of each kind of fabric."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.base.errors import ConfigErrors, ValueProblem
from sim.config.cable_end import CableEnd, cable_end
from sim.config.load import dump, load_topology
from sim.config.topology import Topology

HEAD = """\
sim: 1
name: made-up
source: ["made up for tests"]
nodes:
  - {name: dgx, type: dgx-b200, count: 4}
"""
DIRECT = HEAD + "fabric: {kind: direct, link: infiniband-ndr, rails: 8, cables: {node_leaf: 2 m}}\n"
EXPLICIT = (
    HEAD
    + """\
fabric:
  kind: explicit
  link: infiniband-ndr
  rails: 8
  switches: [{name: leaf-0, tier: 1, radix: 64}]
  cables: [{from: dgx/0-3/0-7, to: leaf-0, length: 3 m}]
"""
)
TIERED = (
    HEAD
    + """\
fabric:
  kind: rail-optimized
  link: infiniband-ndr
  rails: 8
  rails_per_leaf: 4
  nodes_per_unit: 4
  units_per_pod: 1
  leaf: {radix: 64, uplinks: 0}
  routing: {kind: ecmp, qps: 4, bytes: pooled}
"""
)


def topology(folder: Path, text: str) -> Topology:
    path = folder / "topology.yaml"
    path.write_text(text)
    return load_topology(path)


def mistakes(folder: Path, text: str) -> list[tuple[str, str, str | None]]:
    with pytest.raises(ConfigErrors) as caught:
        topology(folder, text)
    return [(error.key, error.problem, error.hint) for error in caught.value.errors]


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("leaf-0", CableEnd("leaf-0")),
        ("dgx/0/0", CableEnd("dgx", range(1), range(1))),
        ("dgx/0-15/0", CableEnd("dgx", range(16), range(1))),
        ("dgx/3-4/2-7", CableEnd("dgx", range(3, 5), range(2, 8))),
    ],
)
def test_ends_of_cables_are_read_and_written(text: str, end: CableEnd) -> None:
    assert cable_end(text) == end
    assert str(end) == text
    assert end.is_switch == ("/" not in text)


@pytest.mark.parametrize(
    "text", ["", "dgx/0", "dgx/0/0/0", "dgx/a/0", "dgx/-1/0", "dgx/0-/0", "0/0/0", "le af"]
)
def test_what_is_no_end_of_a_cable(text: str) -> None:
    with pytest.raises(ValueProblem, match="cannot read"):
        cable_end(text)


def test_a_range_that_runs_backwards_is_turned_around() -> None:
    with pytest.raises(ValueProblem, match="runs backwards; write 2-7"):
        cable_end("dgx/7-2/0")


@pytest.mark.parametrize("text", [DIRECT, EXPLICIT, TIERED])
def test_what_is_written_loads_again(tmp_path: Path, text: str) -> None:
    form = topology(tmp_path, text)
    assert topology(tmp_path, dump(form, tmp_path)) == form
    assert form.replace({"name": "other"}).fabric == form.fabric


@pytest.mark.parametrize(
    ("text", "old", "new", "key", "problem"),
    [
        (
            DIRECT,
            "rails: 8",
            "rails: 8, leaf: {radix: 64, uplinks: 0}",
            "leaf",
            "kind direct does not use leaf",
        ),
        (DIRECT, "cables: {node_leaf: 2 m}", "cables: []", "cables", "cables gives only their lengths"),
        (DIRECT, "direct", "direkt", "kind", "'direkt' is no kind of fabric"),
        (
            EXPLICIT,
            "  rails: 8",
            "  rails: 8\n  nodes_per_unit: 2",
            "nodes_per_unit",
            "does not use nodes_per_unit",
        ),
        (EXPLICIT, "  switches: [{name: leaf-0, tier: 1, radix: 64}]\n", "", "", "needs switches"),
        (
            EXPLICIT,
            "[{from: dgx/0-3/0-7, to: leaf-0, length: 3 m}]",
            "{leaf_spine: 3 m}",
            "cables",
            "lists its cables",
        ),
        (EXPLICIT, "tier: 1", "tier: 4", "switches.0.tier", "4 is not one of 1, 2, 3"),
        (EXPLICIT, "from: dgx/0-3/0-7, ", "", "cables.0.from", "missing key"),
        (EXPLICIT, "from:", "form:", "cables.0.form", "unknown key"),
        (TIERED, "  leaf: {radix: 64, uplinks: 0}\n", "", "", "kind rail-optimized needs leaf"),
        (TIERED, "rails_per_leaf: 4", "rails_per_leaf: 3", "rails_per_leaf", "do not divide the 8 rails"),
        (TIERED, "kind: ecmp", "kind: spray", "routing.bytes", "bytes and qps are for kind: ecmp"),
        (TIERED, "qps: 4", "qps: 0", "routing.qps", "must be above 0"),
    ],
)
def test_keys_that_do_not_fit_the_kind(
    tmp_path: Path, text: str, old: str, new: str, key: str, problem: str
) -> None:
    assert old in text
    found = mistakes(tmp_path, text.replace(old, new))
    assert [error[0] for error in found] == [f"fabric.{key}" if key else "fabric"]
    assert problem in found[0][1]


def test_a_builder_of_ones_own_may_use_any_key(tmp_path: Path) -> None:
    form = topology(tmp_path, TIERED.replace("rail-optimized", "my.module:ring"))
    assert form.fabric is not None
    assert form.fabric.kind == "my.module:ring"


def test_a_domain_is_whole(tmp_path: Path) -> None:
    text = DIRECT.replace("count: 4", "count: 40, domain_nodes: 18")
    assert mistakes(tmp_path, text) == [
        (
            "nodes.0.count",
            "40 nodes are not a whole number of NVLink domains of 18",
            "write count: 36 or 54; a smaller domain is a group of its own",
        )
    ]


def test_queue_pairs_are_one_unless_ecmp_has_more(tmp_path: Path) -> None:
    for text, qps in ((TIERED, 4), (DIRECT, 1)):
        fabric = topology(tmp_path, text).fabric
        assert fabric is not None
        assert fabric.routing.qps == qps
