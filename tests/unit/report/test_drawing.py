"""The drawing of a topology: what is in the scene, and that its colours and files are what they should be."""

from collections import Counter
from types import SimpleNamespace

import pandas as pd
import pytest
from matplotlib.colors import to_hex
from models.clusters import B200_4000, SMALL, changed

from sim import api
from sim.base.errors import ConfigError
from sim.catalog import load_catalog
from sim.cli.topology import described
from sim.config.load import load_topology
from sim.report.draw import IDLE, LINK, MARKED, STEPS, colour_of, draw, save_drawing
from sim.report.loads import Load, Loads, loads_of
from sim.report.scene import scene
from sim.topology.cluster import build

SCENARIO = """\
sim: 1
name: small
topology: topology.yaml
model: {name: llama-3.1-8b}
pools:
  - {name: prefill, role: prefill, replicas: 6, tp: 8}
  - {name: decode, role: decode, replicas: 6, tp: 8, place: spread}
workload:
  arrivals: {kind: poisson, rate: 100 req/s}
  input: {kind: fixed, tokens: 4000}
  output: {kind: fixed, tokens: 5}
  limit: 150
"""


def parts_of(folder, text):
    path = folder / "topology.yaml"
    path.write_text(text)
    form = load_topology(path)
    cluster = build(form, load_catalog())
    return described(form, cluster), cluster.graph if cluster.fabric else None


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    return parts_of(tmp_path_factory.mktemp("large"), B200_4000.read_text())


def boxes(laid):
    return Counter(box.kind for box in laid.boxes)


def said(laid):
    return {words.text for words in laid.words}


def test_one_unit_in_full_the_rest_folded(large):
    laid = scene(*large)
    found = boxes(laid)
    assert (found["core"], found["spine"], found["leaf"], found["node"], found["gpu"]) == (64, 32, 8, 32, 256)
    assert found["domain"] == 32
    assert {"3 more units", "2 more pods", "pod 3", "pod 0", "unit 0"} <= said(laid)
    assert {"64 cores", "128 spines", "128 leaves", "500 nodes", "4 096 cables", "4 000 cables"} <= said(laid)
    assert [box.copies for box in laid.boxes if box.kind == "card"] == [1, 2, 3]


def test_every_cable_of_the_unit_is_a_line(large):
    laid = scene(*large)
    lines = Counter(strand.kind for strand in laid.strands if not any(strand.widths))
    assert lines == {"node leaf": 32 * 8, "leaf spine": 8 * 32, "spine core": 32, "nvlink": 32}
    marked = Counter(strand.kind for strand in laid.strands if strand.is_marked)
    assert marked == {"node leaf": 32, "leaf spine": 32, "spine core": 32}
    assert laid.marked == "first rail"


def test_everything_is_on_the_paper(large):
    laid = scene(*large)
    assert all(box.x >= 0 and box.x + box.width <= 16 for box in laid.boxes)
    assert all(box.y >= 0 and box.y + box.height <= laid.height for box in laid.boxes)


def test_an_oversubscribed_tier_says_so(tmp_path):
    laid = scene(
        *parts_of(tmp_path, changed(SMALL, ("uplinks: 4}", "uplinks: 2}"), ("per_pod: 4", "per_pod: 2")))
    )
    assert "48 cables\noversubscribed 2 : 1" in said(laid)


def test_many_nodes_and_many_spines_end_in_an_ellipsis(tmp_path):
    text = changed(
        SMALL,
        ("count: 12", "count: 60"),
        ("nodes_per_unit: 4", "nodes_per_unit: 60"),
        ("leaf: {radix: 64, uplinks: 4}", "leaf: {radix: 200, uplinks: 80}"),
        ("per_pod: 4, radix: 64, uplinks: 8", "per_pod: 80, radix: 64, uplinks: 4"),
        ("count: 4, radix: 64", "count: 4, radix: 80"),
    )
    laid = scene(*parts_of(tmp_path, text))
    assert {"… 24 more", "… 16 more"} <= said(laid)
    assert (boxes(laid)["node"], boxes(laid)["spine"]) == (36, 64)


def test_two_nodes_back_to_back(tmp_path):
    text = changed(SMALL[: SMALL.index("fabric:")], ("count: 12", "count: 2"))
    laid = scene(*parts_of(tmp_path, text + "fabric: {kind: direct, link: infiniband-ndr, rails: 8}\n"))
    assert Counter(strand.kind for strand in laid.strands) == {"node node": 8, "nvlink": 2}
    assert boxes(laid)["nic"] == 16


def test_nodes_of_one_domain_are_held_together(tmp_path):
    laid = scene(*parts_of(tmp_path, changed(SMALL, ("count: 12", "count: 12, domain_nodes: 2"))))
    assert boxes(laid)["domain"] == 2
    assert "one NVLink domain of 16 GPUs" in said(laid)


def painted(parts, loads):
    """The colours of lines in a drawing, by where they begin and end."""
    lines = draw(*parts, loads).axes[0].lines
    return {(tuple(line.get_xdata()), tuple(line.get_ydata())): line.get_color() for line in lines}


def test_each_line_takes_the_colour_of_what_its_own_cables_carried(tmp_path):
    parts = parts_of(tmp_path, SMALL)
    joints = {
        (("node", 2), ("leaf", 5)): 0.3,
        (("leaf", 1), ("spine", 3)): 0.7,
        (("spine", 1), ("core", 2)): 0.005,
        (("leaf", 8), ("spine", 0)): 0.1,  # of a folded unit
    }
    colours = painted(parts, Loads({}, joints))
    lines = [strand for strand in scene(*parts).strands if not any(strand.widths) and strand.kind != "nvlink"]
    assert Counter(strand.kind for strand in lines) == {"node leaf": 32, "leaf spine": 32, "spine core": 16}
    for strand in lines:
        assert colours[strand.x, strand.y] == colour_of(joints.get(strand.joint, 0.0)), strand.joint
    assert Counter(colours[strand.x, strand.y] for strand in lines)[IDLE] == 77


def test_a_wedge_takes_the_colour_of_its_tier_and_the_margin_says_how_much_it_was(tmp_path):
    loads = Loads({"leaf": Load(0.3, 0.95, 1.0), "nvlink": Load(0.02, 0.04, 0.1)})
    axes = draw(*parts_of(tmp_path, SMALL), loads).axes[0]
    wedges = [to_hex(patch.get_facecolor()).upper() for patch in axes.patches if patch.get_zorder() == 2]
    assert sorted(wedges) == sorted([colour_of(0.3), IDLE])  # units beside the first, and pods
    texts = {text.get_text() for text in axes.texts}
    assert "96 cables\n30 % mean, 95 % busiest\npeak 100 %" in texts
    assert "NVLink 2 % mean,\n4 % busiest" in texts
    assert {"mean use of links", "none", *(words for _, _, words in STEPS)} <= texts


def test_without_a_run_nothing_is_said_of_loads(tmp_path):
    axes = draw(*parts_of(tmp_path, SMALL)).axes[0]
    assert {MARKED, LINK} <= {line.get_color() for line in axes.lines}
    assert not any("busiest" in text.get_text() or "NVLink 0" in text.get_text() for text in axes.texts)


def test_nvlink_of_a_node_is_a_line_where_it_carried_something(tmp_path):
    parts = parts_of(tmp_path, SMALL)
    busy = [strand for strand in scene(*parts).strands if strand.joint == (("node", 1), ("nvlink", 0))]
    colours = painted(parts, Loads({}, {(("node", 1), ("nvlink", 0)): 0.06}))
    assert [colours[strand.x, strand.y] for strand in busy] == [colour_of(0.06)]
    nvlinks = [strand for strand in scene(*parts).strands if strand.kind == "nvlink"]
    assert sum((strand.x, strand.y) in colours for strand in nvlinks) == 1


def test_cables_back_to_back_are_coloured_by_rail(tmp_path):
    text = changed(SMALL[: SMALL.index("fabric:")], ("count: 12", "count: 2"))
    parts = parts_of(tmp_path, text + "fabric: {kind: direct, link: infiniband-ndr, rails: 4}\n")
    colours = painted(parts, Loads({}, {(("node", 0), ("rail", 1)): 0.06}))
    lines = [strand for strand in scene(*parts).strands if strand.kind == "node node"]
    assert [colours[strand.x, strand.y] for strand in lines] == [
        colour_of(0.06 if i in {2, 3} else 0) for i in range(8)
    ]


def test_steps_of_colour():
    assert [colour_of(fraction) for fraction in (1e-9, 0.01, 0.05, 0.2, 0.5)] == [
        colour for _, colour, _ in STEPS
    ]
    assert colour_of(0) == IDLE
    assert len({IDLE, *(colour for _, colour, _ in STEPS)}) == len(STEPS) + 1


def row(kind, carried, capacity=100.0, peak=0.5, **ends):
    nowhere = {"nodes": [], "rails": [], "leaves": [], "spines": [], "cores": []}
    figures = {"capacity_bytes_per_s": capacity, "carried_bytes": carried, "peak_fraction": peak}
    return {"kind": kind, **nowhere, **ends, **figures}


def test_loads_are_those_of_the_busier_direction_over_the_window():
    rows = [
        row("nic_tx", 200.0, nodes=[3], rails=[0, 1], leaves=[4, 5]),
        row("nic_tx", 0.0, nodes=[4], rails=[0, 1], leaves=[4, 5]),
        row("nic_rx", 100.0, peak=0.9, nodes=[3], rails=[0, 1], leaves=[4, 5]),
        row("leaf_up", 300.0, leaves=[4, 5], spines=[0, 1]),
        row("leaf_down", 400.0, leaves=[4], spines=[1]),
        row("spine_up", 10.0, spines=[0], cores=[7]),
        row("nvlink_rx", 50.0, nodes=[3], rails=[0, 1]),
        row("dram", 900.0, nodes=[3]),
    ]
    run = SimpleNamespace(links=pd.DataFrame(rows), figures={"window_s": 10.0})
    loads = loads_of(run)
    assert loads.tiers["node"] == Load(pytest.approx(0.1), pytest.approx(0.2), 0.9)
    assert loads.joints == pytest.approx(
        {
            (("node", 3), ("leaf", 4)): 0.2,
            (("node", 3), ("leaf", 5)): 0.2,
            (("node", 4), ("leaf", 4)): 0.0,
            (("node", 4), ("leaf", 5)): 0.0,
            (("leaf", 4), ("spine", 0)): 0.3,
            (("leaf", 5), ("spine", 0)): 0.3,
            (("leaf", 4), ("spine", 1)): 0.4,
            (("leaf", 5), ("spine", 1)): 0.3,
            (("spine", 0), ("core", 7)): 0.01,
            (("node", 3), ("nvlink", 0)): 0.05,
        }
    )
    assert set(loads.tiers) == {"node", "leaf", "spine", "nvlink"}


@pytest.mark.parametrize("routing", ["{kind: spray}", "{kind: ecmp, qps: 1}"])
def test_the_loads_of_a_run_are_those_of_its_links_by_name(tmp_path, routing):
    (tmp_path / "topology.yaml").write_text(f"{SMALL}  routing: {routing}\n")
    (tmp_path / "scenario.yaml").write_text(SCENARIO)
    run = api.run(api.load(tmp_path / "scenario.yaml"))
    loads = loads_of(run)
    could = run.links["capacity_bytes_per_s"] * run.figures["window_s"]
    used = dict(zip(run.links["name"], run.links["carried_bytes"] / could, strict=True))
    rails = "" if "spray" in routing else " rail 3"
    expected = max(used.get(f"node 1 NIC {way}{rails}", 0.0) for way in ("tx", "rx"))
    assert loads.joints[("node", 1), ("leaf", 3)] == pytest.approx(expected)
    if "spray" in routing:
        ways = [f"unit 0 leaf 0 to unit 0 leaf 7 {way}" for way in ("up", "down")]
    else:
        ways = ["unit 0 leaf 3 to pod 0 spine 2", "pod 0 spine 2 to unit 0 leaf 3"]
    expected = max(used.get(name, 0.0) for name in ways)
    assert 0 < loads.joints[("leaf", 3), ("spine", 2)] == pytest.approx(expected)


def test_files(tmp_path, large):
    figure = draw(*parts_of(tmp_path, SMALL))
    for name in ("a.png", "b.png", "a.svg"):
        save_drawing(figure, tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    written = (tmp_path / "a.svg").read_bytes()
    save_drawing(figure, tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_bytes() == written
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "a.svg").read_text()
    save_drawing(draw(*large), tmp_path / "large.png")
    assert (tmp_path / "large.png").stat().st_size < 300_000
    with pytest.raises(ConfigError, match=r"neither a \.png nor a \.svg"):
        save_drawing(figure, tmp_path / "a.jpg")
