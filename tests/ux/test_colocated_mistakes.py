"""What cannot be together with colocated pools, word for word, at its place in the scenario."""

import pytest

from sim import api

SCENARIO = """\
sim: 1
name: study
topology: {topology}
model: llama-3.1-8b
engine: vllm
pools:
{pools}
workload:
  arrivals: {{kind: poisson, rate: 1 req/s}}
  input: {{kind: fixed, tokens: 10}}
  output: {{kind: fixed, tokens: 10}}
slo: [ttft p90 < 1 s]
"""
SERVE = "  - {{name: serve, role: colocated, replicas: 2, tp: 1{more}}}"


@pytest.fixture
def told(tmp_path, request):
    def told(pools, *sets):
        topology = request.config.rootpath / "topologies" / "one-hgx-h200.yaml"
        path = tmp_path / "study.yaml"
        path.write_text(SCENARIO.format(topology=topology, pools=pools))
        try:
            scenario = api.load(path, sets)
        except Exception as wrong:
            return str(wrong).replace(str(path), "study.yaml")
        found = api.check(scenario)
        return "\n".join(str(one) for one in found).replace(str(path), "study.yaml")

    return told


def serve(more=""):
    return SERVE.format(more=more)


@pytest.mark.parametrize(
    ("more", "place", "problem", "hint"),
    [
        (
            ", batching: statc",
            "study.yaml:7:56: pools.0.batching",
            "unknown batching rule 'statc'",
            "did you mean 'static'?",
        ),
        (
            ", batching: decode_only",
            "study.yaml:7:56: pools.0.batching",
            "decode_only is what pools with role decode do",
            "write role: decode, or another rule",
        ),
        (
            ", batching: static, chunk_tokens: 100",
            "study.yaml:7:74: pools.0.chunk_tokens",
            "batching static computes prompts whole",
            "write batching: chunked, or take it out",
        ),
        (
            ", chunk_tokens: 9000",
            "study.yaml:7:56: pools.0.chunk_tokens",
            "a chunk of 9,000 tokens is more than the 8,192 of a step",
            "write 8192 or less, or raise max_batch_tokens",
        ),
        (
            ", max_batch_tokens: 500",
            "study.yaml:7:56: pools.0.max_batch_tokens",
            "1,024 sequences that decode leave nothing for prompts of the 500 tokens of a step",
            "lower max_sequences, or raise max_batch_tokens",
        ),
        (
            ", order: fifo",
            "study.yaml:7:56: pools.0.order",
            "unknown order 'fifo'",
            "choose from fcfs, priority and shortest_prompt",
        ),
        (
            ", place: per-domain 1:2",
            "study.yaml:7:56: pools.0.place",
            "per-domain P:D deals places out to prefill and decode pools",
            "write place: packed, spread or nodes",
        ),
        (
            ", reserve: whole, watermark: 1 %",
            "study.yaml:7:72: pools.0.watermark",
            "nothing grows where memory is reserved whole, so a watermark keeps nothing free",
            "write reserve: grow, or take the watermark out",
        ),
        (
            ", preemption: recompute, swap_space: 4 GiB",
            "study.yaml:7:79: pools.0.swap_space",
            "nothing waits in host memory where sequences are computed anew",
            "write preemption: swap, or take swap_space out",
        ),
        (
            ", swap_space: 4 GiB",
            "study.yaml:7:56: pools.0.swap_space",
            "nothing is swapped to host memory: vLLM",
            "write preemption: swap, or take it out",
        ),
        (
            ", reserve: whole, preemption: swap, swap_space: 4 GiB",
            "study.yaml:7:72: pools.0.preemption",
            "memory is reserved whole, so nobody gives way, and nothing is swapped",
            "write reserve: grow, or take it out",
        ),
        (
            ", preemption: swap, swap_space: 1 TiB",
            "study.yaml:7:74: pools.0.swap_space",
            "8 GPUs with 1.1 TB each, and NVIDIA HGX H200 server",
            "write 274 GB or less",
        ),
    ],
)
def test_a_pool_that_cannot_be(told, more, place, problem, hint):
    text = told(serve(more))
    assert f"{place}: {problem}" in text
    assert f"hint: {hint}" in text


def test_what_only_colocated_pools_have(told):
    text = told("  - {name: prefill, role: prefill, replicas: 2, tp: 1, order: fcfs}")
    assert "study.yaml:7:56: pools.0.order: order means nothing to a pool with role prefill" in text


@pytest.mark.parametrize(
    ("sets", "problem"),
    [
        ("router.reject=slo", "--set router.reject=slo: colocated pools make no estimates to reject by"),
        (
            "router.colocated_tokens=9",
            "--set router.colocated_tokens=9: prompts are dealt out only where there are",
        ),
        (
            "kv_pool.policy=pooled",
            "--set kv_pool.policy=pooled: colocated pools reuse what their own HBM holds",
        ),
    ],
)
def test_what_colocated_pools_alone_cannot_do(told, sets, problem):
    assert problem in told(serve(), sets)


def test_pools_that_are_too_many_or_too_few(told):
    two = told(f"{serve()}\n{serve().replace('serve', 'other')}")
    assert "pools: at most one pool with role colocated is possible, there are 2" in two
    decode = told(f"{serve()}\n  - {{name: decode, role: decode, replicas: 2, tp: 1}}")
    assert "pools: exactly one pool with role prefill is needed, there is none" in decode


def test_a_colocated_pool_alone_is_enough(told):
    assert "GPUs are not used" in told(serve())
    assert "mistake" not in told(serve())


def test_more_than_colocated_replicas_can_do(told):
    text = told(serve(), "workload.arrivals.rate=100000 req/s")
    assert "100000 req/s is more than the 2 colocated replicas can do, about" in text


@pytest.mark.parametrize(
    ("tokens", "acceptance", "problem", "hint"),
    [
        (
            3,
            "[70 %, 60 %]",
            "study.yaml:8:32: speculative.acceptance: 2 probabilities for 3 draft tokens",
            "write one for each, or one alone for all",
        ),
        (
            3,
            "70 %",
            "study.yaml:8:32: speculative.acceptance: must be a list, not '70 %'",
            "write it in brackets: [70 %]",
        ),
        (
            1,
            "[170 %]",
            "study.yaml:8:45: speculative.acceptance.0: '170 %' is too large",
            "write at most 100 %",
        ),
        (
            9,
            "[70 %]",
            "1,024 sequences with 9 drafts each take 10,240 tokens, and a step of serve has 8,192: prompts",
            "draft fewer, lower max_sequences, or raise max_batch_tokens",
        ),
    ],
)
def test_drafts_that_cannot_be_verified(told, tokens, acceptance, problem, hint):
    text = told(
        f"{serve()}\nspeculative: {{draft_tokens: {tokens}, acceptance: {acceptance}, draft_cost: 5 %}}"
    )
    assert problem in text
    assert hint in text
