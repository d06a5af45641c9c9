"""The parts catalogue: GPUs, nodes, links, models and engines as data, each value with its source."""

from sim.catalog.efficiency import Efficiency
from sim.catalog.engine import Engine
from sim.catalog.entry import Entry, Leaf
from sim.catalog.gpu import Gpu
from sim.catalog.link import Link
from sim.catalog.load import Catalog, load_catalog
from sim.catalog.model import Model
from sim.catalog.node import Node
from sim.catalog.source import Source

__all__ = [
    "Catalog",
    "Efficiency",
    "Engine",
    "Entry",
    "Gpu",
    "Leaf",
    "Link",
    "Model",
    "Node",
    "Source",
    "load_catalog",
]
