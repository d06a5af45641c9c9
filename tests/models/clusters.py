"""Clusters for tests: topology files of the repository with some lines changed, and small ones."""

from pathlib import Path

from sim.catalog import load_catalog
from sim.config.load import load_topology
from sim.topology.cluster import build

B200_4000 = Path(__file__).parents[2] / "topologies" / "b200-4000-ib-ndr.yaml"

SMALL = """\
sim: 1
name: small
source: ["made up for tests"]
nodes:
  - {name: dgx, type: dgx-b200, count: 12}
fabric:
  kind: rail-optimized
  link: infiniband-ndr
  rails: 8
  nodes_per_unit: 4
  units_per_pod: 2
  leaf: {radix: 64, uplinks: 4}
  spine: {per_pod: 4, radix: 64, uplinks: 8}
  core: {count: 4, radix: 64}
"""


def changed(text, *changes):
    """A text with replacements (old, new), each of which must have something to replace."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


def cluster_of(folder, text):
    """The cluster of a topology file with this text."""
    path = folder / "topology.yaml"
    path.write_text(text)
    return build(load_topology(path), load_catalog())


def routed(folder, routing, topology="b200-4000-ib-ndr"):
    """The cluster of a topology of the repository with another routing."""
    base = B200_4000.with_name(f"{topology}.yaml")
    about = f'sim: 1\nname: routed\nsource: ["made up for tests"]\nextends: {base}\n'
    return cluster_of(folder, f"{about}fabric:\n  routing: {routing}\n")
