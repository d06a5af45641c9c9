"""The drawing of a topology: what is in the scene, and that its colours and files are what they should be."""

from collections import Counter
from types import SimpleNamespace

import pandas as pd
import pytest
from models.clusters import B200_4000, SMALL, changed

from sim.base.errors import ConfigError
from sim.catalog import load_catalog
from sim.cli.topology import described
from sim.config.load import load_topology
from sim.report.draw import LINK, MARKED, STEPS, colour_of, draw, save_drawing
from sim.report.loads import Load, loads_of
from sim.report.scene import scene
from sim.topology.cluster import build


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
    assert lines == {"node leaf": 32 * 8, "leaf spine": 8 * 32, "spine core": 32}
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
    assert Counter(strand.kind for strand in laid.strands) == {"node node": 8}
    assert boxes(laid)["nic"] == 16


def test_nodes_of_one_domain_are_held_together(tmp_path):
    laid = scene(*parts_of(tmp_path, changed(SMALL, ("count: 12", "count: 12, domain_nodes: 2"))))
    assert boxes(laid)["domain"] == 2
    assert "one NVLink domain of 16 GPUs" in said(laid)


def test_links_take_the_colour_of_their_load(tmp_path):
    parts = parts_of(tmp_path, SMALL)
    loads = {"node": Load(0.2, 0.5), "leaf": Load(0.95, 1.0), "spine": Load(0.01, 0.02)}
    colours = {line.get_color() for line in draw(*parts, loads).axes[0].lines}
    assert {colour_of(0.2), colour_of(0.95), colour_of(0.01)} <= colours
    assert not {MARKED, LINK} & colours
    texts = {text.get_text() for text in draw(*parts, loads).axes[0].texts}
    assert "96 cables\n95 % busy,\n100 % at most" in {
        text.replace("\noversubscribed 1 : 1", "") for text in texts
    }
    assert {"mean load of links", *(words for _, _, words in STEPS)} <= texts
    assert {MARKED, LINK} <= {line.get_color() for line in draw(*parts).axes[0].lines}


def test_steps_of_colour():
    assert [colour_of(fraction) for fraction in (0, 0.05, 0.3, 0.6, 0.9)] == [
        colour for _, colour, _ in STEPS
    ]
    assert len({colour for _, colour, _ in STEPS}) == len(STEPS)


def test_loads_are_read_from_samples():
    rows = [
        (0, "links", "nic_tx", "used_fraction", 0.1),
        (1, "links", "nic_tx", "used_fraction", 0.3),
        (0, "links", "nic_tx", "busiest_fraction", 0.5),
        (1, "links", "nic_tx", "busiest_fraction", 0.4),
        (0, "links", "nic_rx", "used_fraction", 0.1),
        (0, "links", "nic_rx", "busiest_fraction", 0.9),
        (0, "links", "dram", "used_fraction", 0.9),
        (0, "links", "dram", "busiest_fraction", 0.9),
        (0, "pool", "leaf_up", "used_fraction", 0.9),
    ]
    samples = pd.DataFrame(rows, columns=["at_ps", "kind", "name", "metric", "value"])
    assert loads_of(SimpleNamespace(samples=samples)) == {"node": Load(pytest.approx(0.2), 0.9)}


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
