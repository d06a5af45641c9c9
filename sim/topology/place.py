"""Nodes and GPUs of a cluster by what people call them: `17`, `dgx/17` or `gpu 130`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sim.base.errors import ConfigError, did_you_mean
from sim.topology.cluster import Cluster

_PLACE = re.compile(r"(?P<gpu>gpu[ :-]?)?(?P<number>-?[0-9]{1,9})")
_MEMBER = re.compile(r"(?P<group>[A-Za-z][A-Za-z0-9_-]*)/(?P<index>[0-9]{1,9})")
HINT = "write a node by its number, as GROUP/NUMBER, or `gpu N`"


@dataclass(frozen=True, slots=True)
class Place:
    """A node, or one GPU of it (counted within the node)."""

    node: int
    gpu: int | None
    name: str


def place(cluster: Cluster, text: str) -> Place:
    """The place that a text names: `17`, `dgx/17` or `gpu 130`, counted over the whole cluster."""
    member, found = _MEMBER.fullmatch(text), _PLACE.fullmatch(text)
    if member is not None:
        return _member(cluster, text, member["group"], int(member["index"]))
    if found is None:
        raise ConfigError(text, None, None, problem="is no node and no GPU", hint=HINT)
    number = int(found["number"])
    what, count = ("GPU", cluster.gpus) if found["gpu"] else ("node", len(cluster.types))
    if not 0 <= number < count:
        problem = f"there is no {what} {number}: {cluster.name} has {count}"
        raise ConfigError(text, None, None, problem=problem, hint=f"count from 0 to {count - 1}")
    if not found["gpu"]:
        return Place(number, None, f"node {number}")
    first = 0
    for node, kind in enumerate(cluster.types):
        if number < first + kind.gpus:
            return Place(node, number - first, f"GPU {number}")
        first += kind.gpus
    raise AssertionError(number)


def _member(cluster: Cluster, text: str, group: str, index: int) -> Place:
    members = [node for node, site in enumerate(cluster.sites) if site.group == group]
    if not members:
        groups = dict.fromkeys(site.group for site in cluster.sites)
        problem = f"there is no group of nodes '{group}'"
        raise ConfigError(text, None, None, problem=problem, hint=did_you_mean(group, groups))
    if index >= len(members):
        problem = f"there is no node {index}: {group} has {len(members)}"
        raise ConfigError(text, None, None, problem=problem, hint=f"count from 0 to {len(members) - 1}")
    return Place(members[index], None, f"node {members[index]}")
