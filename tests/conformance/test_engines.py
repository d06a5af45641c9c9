"""Every engine profile serves: colocated, and with prefill and decode apart."""

import pytest

from sim import api
from sim.catalog import load_catalog
from sim.serving.batching import OF_ROLE, Limits, Load, batching
from sim.serving.order import order

ENGINES = load_catalog().engines
SCENARIO = """\
sim: 1
name: engines
topology: {topology}
model: {{name: llama-3.1-8b, weights: bf16, kv: bf16}}
engine: {engine}
pools:
{pools}
workload:
  arrivals: {{kind: poisson, rate: 20 req/s}}
  input: {{kind: lognormal, median_tokens: 800, sigma: 0.8, max_tokens: 6000}}
  output: {{kind: lognormal, median_tokens: 40, sigma: 0.5, max_tokens: 200}}
run: {{duration: 5 s}}
"""
COLOCATED = "  - {name: serve, role: colocated, replicas: 2, tp: 1}"
APART = """\
  - {name: prefill, role: prefill, replicas: 1, tp: 1}
  - {name: decode, role: decode, replicas: 1, tp: 1}"""


@pytest.fixture
def run(tmp_path, request):
    def run(engine, pools, *sets):
        topology = request.config.rootpath / "topologies" / "one-hgx-h200.yaml"
        path = tmp_path / "scenario.yaml"
        path.write_text(SCENARIO.format(topology=topology, engine=engine, pools=pools))
        return api.run(api.load(path, sets))

    return run


@pytest.mark.parametrize("pools", [COLOCATED, APART], ids=["colocated", "apart"])
@pytest.mark.parametrize("engine", list(ENGINES))
def test_every_request_is_served(run, engine, pools):
    found = run(engine, pools)
    assert (found.requests["status"] == "finished").all()
    assert len(found.requests) > 50
    for pool in found.figures["pools"]:
        assert 0 < pool["utilisation"] <= 1
        assert (pool["mean_batch"] is not None) == (pool["role"] != "prefill")


@pytest.mark.parametrize("name", list(ENGINES))
def test_a_profile_names_a_rule_and_fits_it(name):
    engine = ENGINES[name]
    assert engine.batching in batching
    assert engine.batching not in OF_ROLE.values()
    allowance = batching[engine.batching](
        Load(0, 0, 1), Limits(engine.token_budget, engine.chunk_tokens, engine.max_sequences)
    )
    assert not allowance.mixes or engine.token_budget > engine.max_sequences
    assert engine.kv_reservation != "grow" or engine.preemption == "recompute"
    assert engine.restart_time_ps > 0


@pytest.mark.parametrize("rule", [name for name in batching if name not in OF_ROLE.values()])
@pytest.mark.parametrize("order_name", list(order))
def test_every_rule_serves_in_every_order(run, rule, order_name):
    found = run("vllm", COLOCATED, f"pools.serve.batching={rule}", f"pools.serve.order={order_name}")
    assert (found.requests["status"] == "finished").all()


def test_a_batch_of_17_costs_the_graph_of_24():
    assert ENGINES["reference-h200"].padded_batch(17) == 24
    assert ENGINES["vllm"].padded_batch(17) == 24
    assert ENGINES["trtllm"].padded_batch(129) == 256


def test_what_the_host_does_beside_the_gpu_costs_less(run):
    """The same engine twice: Rust's host times are small, and hidden beside the GPU."""
    slow, fast = (run(engine, COLOCATED).figures["tpot_s"]["p50"] for engine in ("reference", "rust-custom"))
    assert fast < slow
