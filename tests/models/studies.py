"""Small scenarios as files, played through the public verbs."""

from models.clusters import SMALL, changed
from sim import api

SCENARIO = """\
sim: 1
name: small
topology: topology.yaml
model: {name: llama-3.1-8b, weights: fp8, kv: fp8}
pools:
  - {name: prefill, role: prefill, replicas: 3, tp: 8}
  - {name: decode, role: decode, replicas: 3, tp: 8, max_sequences: 16}
workload:
  arrivals: {kind: poisson, rate: 60 req/s}
  input: {kind: lognormal, median_tokens: 2000, sigma: 1, max_tokens: 20000}
  output: {kind: lognormal, median_tokens: 40, sigma: 0.7, max_tokens: 300}
  limit: 300
run: {seed: 1}
slo: [ttft p90 < 2 s]
"""

SHARED_PREFIXES = """\
workload:
  generator: mooncake-conversation
  rate: 20 req/s
  limit: 300
"""


def write(folder, scenario=SCENARIO, topology=SMALL, name="scenario.yaml"):
    """Put a scenario and its topology into a folder; the path of the scenario."""
    (folder / "topology.yaml").write_text(topology)
    path = folder / name
    path.write_text(scenario)
    return path


def with_shared_prefixes(scenario=SCENARIO):
    """The scenario with a workload whose prompts share blocks."""
    start, end = scenario.index("workload:"), scenario.index("run:")
    return scenario[:start] + SHARED_PREFIXES + scenario[end:]


def played(folder, *sets, scenario=SCENARIO, topology=SMALL, **how):
    """Write, load and run."""
    return api.run(api.load(write(folder, scenario, topology), sets), **how)


__all__ = ["SCENARIO", "SMALL", "changed", "played", "with_shared_prefixes", "write"]
