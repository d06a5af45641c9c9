"""The small scenario that tests of the command line spoil, each in its own way."""

SCENARIO = """\
sim: 1
name: chat
topology: topology.yaml
model: {name: llama-3.1-70b}
pools:
  - {name: prefill, role: prefill, replicas: 1}
  - {name: decode, role: decode, replicas: 1}
workload:
  arrivals: {kind: poisson, rate: 1 req/s}
  input: {kind: fixed, tokens: 10}
  output: {kind: fixed, tokens: 10}
run: {duration: 1 min}
slo: [ttft p90 < 500 ms]
"""
