"""A topology as a tree of its parts, equal neighbours folded into one with a count.

Cores hold pods, pods hold spines and units, units hold leaves and nodes; NVLink domains of several nodes
stand between a unit and its nodes where they lie within units. A pod is what spines hold together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from sim.topology.cluster import Cluster
from sim.topology.lending import Lending
from sim.topology.wiring import Core, Leaf, Spine


@dataclass(frozen=True, slots=True)
class Part:
    """`count` equal parts, the first of them number `first` of its kind; `parts` are those of each.

    `down` and `up` are cables of a switch, of `radix` ports; `rails` those of a leaf. `group`, `type`,
    `gpus` and `nics` are those of a node, `dram_bytes` and `nvme_bytes` what it lends to a pool of KV blocks.
    """

    kind: str
    first: int
    count: int = 1
    radix: int = 0
    down: int = 0
    up: int = 0
    rails: int = 0
    group: str = ""
    type: str = ""
    gpus: int = 0
    nics: int = 0
    dram_bytes: int = 0
    nvme_bytes: int = 0
    parts: tuple[Part, ...] = ()


def outline(cluster: Cluster) -> tuple[Part, ...]:
    """The tree of a topology."""
    nodes = range(len(cluster.types))
    if cluster.fabric is None or not cluster.leaves:
        return _nodes(cluster, nodes)
    pods = _pods(cluster)
    if not cluster.spines:
        return folded(_unit(cluster, unit) for unit in sorted(pods))
    blocks = folded(_pod(cluster, number, units, pods) for number, units in enumerate(_blocks(pods)))
    return (*folded(_core(core) for core in cluster.cores), *blocks)


def folded(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Parts with equal neighbours counted as one."""
    found: list[Part] = []
    for part in parts:
        if found and _alike(found[-1]) == _alike(part):
            found[-1] = replace(found[-1], count=found[-1].count + part.count)
        else:
            found.append(part)
    return tuple(found)


def _alike(part: Part) -> Part:
    """A part without what tells it from its like."""
    return replace(part, first=0, count=1, parts=tuple(_numberless(below) for below in part.parts))


def _numberless(part: Part) -> Part:
    return replace(part, first=0, parts=tuple(_numberless(below) for below in part.parts))


def _pods(cluster: Cluster) -> dict[int, set[int]]:
    """The pods of each unit: one, unless its rails have spines of their own."""
    pods: dict[int, set[int]] = {}
    for leaf in cluster.leaves:
        pods.setdefault(leaf.unit, set()).add(leaf.pod)
    return pods


def _blocks(pods: dict[int, set[int]]) -> list[list[int]]:
    """Units that hang together by their pods, in order."""
    blocks: list[tuple[list[int], set[int]]] = []
    for unit in sorted(pods):
        joined = [block for block in blocks if block[1] & pods[unit]]
        units = [*(other for block in joined for other in block[0]), unit]
        spines = pods[unit].union(*(block[1] for block in joined))
        blocks = [*(block for block in blocks if block not in joined), (units, spines)]
    return [units for units, _ in blocks]


def _pod(cluster: Cluster, number: int, units: Sequence[int], pods: dict[int, set[int]]) -> Part:
    held = set().union(*(pods[unit] for unit in units))
    spines = folded(_spine(spine) for spine in cluster.spines if spine.pod in held)
    return Part("pod", number, parts=(*spines, *folded(_unit(cluster, unit) for unit in units)))


def _unit(cluster: Cluster, unit: int) -> Part:
    leaves = folded(_leaf(leaf) for leaf in cluster.leaves if leaf.unit == unit)
    members = sorted({node for leaf in cluster.leaves if leaf.unit == unit for node in leaf.nodes})
    return Part("unit", unit, parts=(*leaves, *_nodes(cluster, members)))


def _nodes(cluster: Cluster, members: Sequence[int]) -> tuple[Part, ...]:
    """Nodes, in their NVLink domains where those are larger than a node and whole here."""
    here = set(members)
    parts: list[Part] = []
    for domain, of_domain in groupby(members, key=cluster.domain_of):
        nodes = folded(_node(cluster, node) for node in of_domain)
        span = cluster.domains[domain]
        is_whole = len(span) > 1 and here.issuperset(span)
        parts.extend(
            (Part("domain", domain, gpus=cluster.domain_gpus(domain), parts=nodes),) if is_whole else nodes
        )
    return folded(parts)


def _node(cluster: Cluster, node: int) -> Part:
    kind = cluster.types[node]
    nics = kind.nics if cluster.fabric else 0
    lent = cluster.lent[node] if cluster.lent else Lending()
    return Part(
        "node",
        node,
        group=cluster.sites[node].group,
        type=kind.name,
        gpus=kind.gpus,
        nics=nics,
        dram_bytes=lent.dram,
        nvme_bytes=lent.nvme,
    )


def _leaf(leaf: Leaf) -> Part:
    return Part(
        "leaf", leaf.number, radix=leaf.radix, down=leaf.down_cables, up=leaf.up_cables, rails=len(leaf.rails)
    )


def _spine(spine: Spine) -> Part:
    return Part("spine", spine.number, radix=spine.radix, down=spine.down_cables, up=spine.up_cables)


def _core(core: Core) -> Part:
    return Part("core", core.number, radix=core.radix, down=core.down_cables)
