"""Benchmarks of the flow network alone: handoffs of 1.3 GB from 350 prefill to 150 decode nodes of b200-4000.

`flows-spray` sends node-level flows, `flows-ecmp` the eight rails of each handoff on their own, with one
queue pair; both 10,000 flows per simulated second, for six seconds. A flow event is the start or end of one
flow that the solver sees. Finding the paths is part of it, as it is in a replay.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from simpy import Event

from sim.bench.figures import Figures, peak_rss_bytes, simpy_events_per_cpu_s
from sim.catalog import load_catalog
from sim.clock import FLOW_START, Clock, Errand
from sim.config.load import load_topology
from sim.network.fabric import Fabric, Port
from sim.network.flows import FlowNetwork
from sim.tables.schema import PS_PER_S
from sim.topology.cluster import build

TOPOLOGY = Path(__file__).parent.parent.parent / "topologies" / "b200-4000-ib-ndr.yaml"
HANDOFF_BYTES = 1_300_000_000
FLOWS_PER_S = 10_000
SIMULATED_S = 6
PREFILL_NODES, DECODE_NODES = 350, 150
CASES = ("flows-spray", "flows-ecmp")


@dataclass(frozen=True, slots=True)
class Handoff:
    """A transfer to be: when, and from which node to which."""

    at_ps: int
    source: int
    target: int


def measure(name: str) -> Figures:
    """Move the handoffs of a case in this process."""
    routing = name.removeprefix("flows-")
    form = load_topology(TOPOLOGY).replace({"fabric.routing.kind": routing})
    cluster = build(form, load_catalog())
    lanes = cluster.rails if routing == "spray" else 1
    fabric, clock = Fabric(cluster, lanes, seed=1), Clock()
    network = FlowNetwork(clock, fabric.table.carried)
    handoffs = drawn(FLOWS_PER_S / fabric.groups)
    Errand(offer(clock, network, fabric, handoffs))
    before = simpy_events_per_cpu_s()
    gc.disable()
    started, events = time.process_time(), 0
    while happened := clock.advance(20_000):
        events += happened
    cpu_s = time.process_time() - started
    gc.enable()
    return Figures(
        name=name,
        requests=len(handoffs),
        cpu_s=cpu_s,
        requests_per_cpu_s=len(handoffs) / cpu_s,
        events_per_request=events / len(handoffs),
        peak_rss_bytes=peak_rss_bytes(),
        simpy_events_per_cpu_s=(before + simpy_events_per_cpu_s()) / 2,
        flow_events_per_cpu_s=network.events / cpu_s,
    )


def drawn(per_s: float) -> list[Handoff]:
    """Poisson handoffs between random nodes, the same every time."""
    dice = random.Random(1)
    handoffs: list[Handoff] = []
    at_s = dice.expovariate(per_s)
    while at_s < SIMULATED_S:
        source, target = dice.randrange(PREFILL_NODES), PREFILL_NODES + dice.randrange(DECODE_NODES)
        handoffs.append(Handoff(round(at_s * PS_PER_S), source, target))
        at_s += dice.expovariate(per_s)
    return handoffs


def offer(
    clock: Clock, network: FlowNetwork, fabric: Fabric, handoffs: list[Handoff]
) -> Generator[Event, None, None]:
    """Start each handoff at its instant, as one flow for each rail group."""
    size = HANDOFF_BYTES // fabric.groups
    for number, handoff in enumerate(handoffs):
        yield clock.at(handoff.at_ps, FLOW_START + number)
        network.send(
            [
                (size, fabric.gpu_to_gpu(Port(handoff.source, group), Port(handoff.target, group)))
                for group in range(fabric.groups)
            ]
        )
