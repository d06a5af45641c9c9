"""A small cluster whose nodes lend memory: twelve nodes in three fabric units, ready to be played."""

from models.clusters import SMALL
from sim.api import Silent, Simulation, load
from sim.resolve import resolve
from sim.tables.recorder import MemorySink, Recorder

SCENARIO = """\
sim: 1
name: small-pool
topology: topology.yaml
model: {name: llama-3.1-70b, weights: fp8, kv: fp8}
pools:
  - {name: prefill, role: prefill, replicas: 8, tp: 8}
  - {name: decode, role: decode, replicas: 4, tp: 8}
router: {policy: conductor, decode_policy: conductor}
kv_pool: {policy: pooled, dram: 100 GB, hbm: false}
workload: {generator: mooncake-conversation, rate: 30 req/s}
run: {duration: 10 s}
slo: [ttft p90 < 2 s, tpot p90 < 50 ms]
"""


def simulation(folder, *sets, topology=SMALL):
    """The scenario with KEY=VALUE settings, not started yet."""
    (folder / "topology.yaml").write_text(topology)
    path = folder / "scenario.yaml"
    path.write_text(SCENARIO)
    return Simulation(resolve(load(path, sets)), Recorder(MemorySink()))


def played(folder, *sets):
    """The same, played to its end."""
    ready = simulation(folder, *sets)
    ready.play(Silent())
    return ready
