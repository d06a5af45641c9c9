"""On which nodes the replicas of a scenario sit: by pool, and by scalable unit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from sim.cli.files import scenario_file
from sim.config.load import load_scenario
from sim.serving.seating import NoRoom, misfit, seat
from sim.serving.span import domains_of
from sim.topology.cluster import Cluster


def placement(cluster: Cluster, path: Path) -> dict[str, Any]:
    """The seats of a scenario's replicas on a cluster, which need not be the one that it names."""
    scenario = load_scenario(scenario_file(path))
    for i, pool in enumerate(scenario.pools):
        wrong = misfit(cluster, pool)
        if wrong is not None:
            key, problem, hint = wrong
            raise scenario.document.error(f"pools.{i}.{key}", f"{problem} on {cluster.name}", hint)
    seats = seat(cluster, scenario.pools)
    if isinstance(seats, NoRoom):
        pool = scenario.pools[seats.pool]
        where = f"on {cluster.name}: there is room for {seats.seated}"
        raise scenario.document.error(
            f"pools.{seats.pool}.replicas",
            f"{seats.wanted} replicas of {pool.tp} GPUs do not fit {where}",
            "use fewer replicas, a smaller tp, or a larger topology",
        )
    nodes = [[one.nodes for one in of_pool] for of_pool in seats]
    pools = [
        {
            "name": pool.name,
            "replicas": pool.replicas,
            "gpus": pool.tp,
            "nodes_each": len(of_seats[0].nodes),
            "domains_each": len(domains_of(cluster, of_seats[0])),
            "place": str(pool.place),
            "nodes": spans([node for of_seat in of_pool for node in of_seat]),
        }
        for pool, of_pool, of_seats in zip(scenario.pools, nodes, seats, strict=True)
    ]
    names = [pool.name for pool in scenario.pools]
    units = list(_units(cluster, names, nodes)) if cluster.fabric else []
    return {"scenario": scenario.name, "pools": pools, "units": units}


def _units(
    cluster: Cluster, names: Sequence[str], nodes: Sequence[Sequence[tuple[int, ...]]]
) -> Iterator[dict[str, str]]:
    """What each unit holds, neighbours that hold the same together; a replica counts where it begins."""
    held = [Counter(cluster.unit_of(of_seat[0]) for of_seat in of_pool) for of_pool in nodes]

    def words(unit: int) -> str:
        counts = [f"{held[i][unit]} {name}" for i, name in enumerate(names) if held[i][unit]]
        return ", ".join(counts) or "nothing"

    units = sorted({cluster.unit_of(node) for node in range(len(cluster.types))})
    for holds, group in groupby(units, key=words):
        numbers = list(group)
        yield {"units": f"unit{'s' if len(numbers) > 1 else ''} {spans(numbers)}", "holds": holds}


def spans(numbers: Sequence[int]) -> str:
    """Numbers as ranges: 0-3, 7."""
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in found)
