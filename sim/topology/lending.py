"""What nodes lend to the pool of KV blocks, read off a topology file and held against what they have.

Units: bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sim.base.errors import ConfigError, did_you_mean
from sim.base.units import show
from sim.catalog import Node
from sim.config.topology import Lent, Topology


@dataclass(frozen=True, slots=True)
class Lending:
    """Host memory and NVMe that one node lends, in bytes."""

    dram: int = 0
    nvme: int = 0


def lendings(form: Topology, types: Sequence[Node], errors: list[ConfigError]) -> tuple[Lending, ...]:
    """What each node lends, in order; what it does not have is noted as an error at its line."""
    firsts: dict[str, range] = {}
    first = 0
    for group in form.nodes:
        firsts[group.name] = range(first, first + group.count)
        first += group.count
    found = [Lending()] * len(types)
    for i, lent in enumerate(form.kv_pool):
        nodes = firsts.get(lent.nodes)
        if nodes is None:
            problem = f"there is no group of nodes '{lent.nodes}'"
            errors.append(
                form.document.error(f"kv_pool.{i}.nodes", problem, did_you_mean(lent.nodes, firsts))
            )
            continue
        _check(form, i, lent, types[nodes[0]], errors)
        for node in nodes:
            found[node] = Lending(lent.dram or 0, lent.nvme or 0)
    return tuple(found)


def _check(form: Topology, i: int, lent: Lent, node: Node, errors: list[ConfigError]) -> None:
    has = {"dram": node.dram_bytes, "nvme": node.nvme_bytes}
    for key, size in (("dram", lent.dram), ("nvme", lent.nvme)):
        there = has[key]
        if size and (there is None or size > there):
            what = "no NVMe that is known" if there is None else show(there, "size")
            problem = f"{show(size, 'size')} are lent, and {node.title} has {what}"
            errors.append(form.document.error(f"kv_pool.{i}.{key}", problem, "lend no more than there is"))
