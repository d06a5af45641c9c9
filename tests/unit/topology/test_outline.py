"""Topologies as trees: equal neighbours are folded, and nothing gets lost by it."""

from collections import Counter

from models.clusters import B200_4000, SMALL, changed, cluster_of
from topology_texts import DIRECT, PLANES

from sim.topology.outline import outline


def tree(parts):
    return [f"{part.kind} x{part.count}" + (f" {tree(part.parts)}" if part.parts else "") for part in parts]


def totals(parts, times=1):
    found = Counter()
    for part in parts:
        found[part.kind] += part.count * times
        found += totals(part.parts, part.count * times)
    return found


def test_b200_4000(tmp_path):
    parts = outline(cluster_of(tmp_path, B200_4000.read_text()))
    unit = "['leaf x8', 'node x32']"
    assert tree(parts) == [
        "core x64",
        f"pod x3 {['spine x32', f'unit x4 {unit}']}",
        f"pod x1 {['spine x32', f'unit x3 {unit}', 'unit x1 ' + str(['leaf x8', 'node x20'])]}",
    ]
    assert parts[2].parts[2].first == 15
    assert totals(parts) == {"core": 64, "pod": 4, "spine": 128, "unit": 16, "leaf": 128, "node": 500}


def test_domains_stand_between_units_and_nodes(tmp_path):
    parts = outline(cluster_of(tmp_path, changed(SMALL, ("count: 12", "count: 12, domain_nodes: 2"))))
    unit = parts[1].parts[1]
    assert [(part.kind, part.count, part.gpus) for part in unit.parts] == [("leaf", 8, 0), ("domain", 2, 16)]
    assert totals(parts)["node"] == 12


def test_domains_across_units_are_left_out(tmp_path):
    parts = outline(cluster_of(tmp_path, changed(SMALL, ("count: 12", "count: 12, domain_nodes: 3"))))
    assert totals(parts)["node"] == 12
    assert {part.kind for part in parts[1].parts[1].parts} == {"leaf", "domain", "node"}


def test_rails_with_spines_of_their_own(tmp_path):
    assert tree(outline(cluster_of(tmp_path, PLANES))) == [
        "pod x1 ['spine x2', \"unit x2 ['leaf x2', 'node x2']\"]"
    ]


def test_one_tier_and_none(tmp_path):
    one_tier = (
        SMALL[: SMALL.index("  spine:")].replace("uplinks: 4", "uplinks: 0").replace("count: 12", "count: 4")
    )
    assert tree(outline(cluster_of(tmp_path, one_tier))) == ["unit x1 ['leaf x8', 'node x4']"]
    assert tree(outline(cluster_of(tmp_path, DIRECT))) == ["node x2"]
    assert tree(outline(cluster_of(tmp_path, SMALL[: SMALL.index("fabric:")]))) == ["node x12"]
