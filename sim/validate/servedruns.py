"""Published runs of a model on GPUs: offline throughput, runs at a concurrency, and single prefills.

Model: one replica in closed loop (sim.validate.closedloop), all requests of equal length. Offline runs queue
all requests at once, and fill steps as trtllm-bench does (sim.validate.trtllmbench). A throughput is output
tokens over the whole run, its end included, for the instance, or divided by its GPUs where it is told for
each.
MLPerf: prompts of Llama-3.1-8B are articles of CNN/DailyMail of 778 tokens in the mean and outputs have 128
tokens, both from memory; one replica on each GPU.
Ignores: everything that these tables do not say of the engine's settings.
"""

from __future__ import annotations

import re
from functools import cache

from sim.base.errors import UnsupportedError
from sim.validate.closedloop import PS_PER_MS, ClosedLoop, Load, Seen
from sim.validate.expression import Prediction
from sim.validate.publishedentry import Entry
from sim.validate.setup import Setup, check_fits, model_named, replica, seen
from sim.validate.trtllmbench import tuned

HARDWARE = (
    (r"GB300", "gb300-tray"),
    (r"GB200", "gb200-tray"),
    (r"\bB300", "dgx-b300"),
    (r"\bB200", "dgx-b200"),
    (r"H200-NVL", None),
    (r"H200", "hgx-h200"),
    (r"H100", "dgx-h100"),
    (r"\bH800", "hgx-h800"),
    (r"\bA800", "mooncake-a800"),
    (r"\bA100", "dgx-a100"),
)
"""Words of a hardware text, and the node that stands for it; None where none does."""

MLPERF_INPUT_TOKENS, MLPERF_OUTPUT_TOKENS, MLPERF_REQUESTS = 778, 128, 3000
LENGTHS = re.compile(r"ISL ([\d,]+), OSL ([\d,]+)")


def node_of(entry: Entry) -> str:
    """The node that the hardware of an entry stands for."""
    node = next((node for pattern, node in HARDWARE if re.search(pattern, entry.hardware, re.I)), None)
    if node is not None:
        return node
    raise UnsupportedError(f"no node of the catalogue stands for {entry.hardware}")


def offline(entry: Entry) -> Prediction | None:
    """All requests queued at once: output tokens per second."""
    lengths = LENGTHS.search(entry.workload)
    queued = re.search(r"([\d,]+) requests", entry.workload)
    if lengths is None or queued is None or entry.plain_unit != "tokens/s":
        return None
    setup = _setup(entry)
    requests = _count(queued[1])
    came = _benched(setup, Load(requests, requests, _count(lengths[1]), _count(lengths[2])))
    is_per_gpu = "/GPU" in entry.unit
    value = came.output_tokens_per_s / (setup.tp if is_per_gpu else 1)
    return Prediction(value, f"offline throughput, {setup.model}")


@cache
def _benched(setup: Setup, load: Load) -> Seen:
    """What comes of a run of trtllm-bench; equal questions are answered once."""
    server = replica(setup)
    check_fits(server, load)
    return ClosedLoop(tuned(server, load), load).run()


def closed_loop(entry: Entry) -> Prediction | None:
    """A fixed concurrency: TTFT or TPOT."""
    lengths = LENGTHS.search(entry.workload)
    users = re.search(r"concurrency ([\d,]+)$", entry.workload)
    if lengths is None or users is None or entry.kind not in {"ttft", "tpot"} or entry.plain_unit != "ms":
        return None
    if "aggregated" not in entry.parallelism:
        return None
    load = Load(_count(users[1]), 10 * _count(users[1]), _count(lengths[1]), _count(lengths[2]), 0.8)
    came = seen(_setup(entry), load)
    value = came.ttft_ps if entry.kind == "ttft" else came.tpot_ps
    return Prediction(value / PS_PER_MS, "runs at a fixed concurrency")


def mlperf(entry: Entry) -> Prediction | None:
    """MLPerf offline of a model whose lengths are known and that a GPU holds alone."""
    if not entry.workload.startswith("MLPerf Offline") or entry.model != "llama3.1-8b":
        return None
    if entry.gpus is None:
        raise UnsupportedError("how many GPUs took part is not said")
    setup = Setup(node_of(entry), "llama-3.1-8b", entry.precision, 1, "trtllm")
    load = Load(MLPERF_REQUESTS, MLPERF_REQUESTS, MLPERF_INPUT_TOKENS, MLPERF_OUTPUT_TOKENS)
    return Prediction(seen(setup, load).output_tokens_per_s * entry.gpus, "MLPerf offline, llama-3.1-8b")


def prefill_alone(entry: Entry) -> Prediction | None:
    """One prompt of a prefix that nobody has: its prefill."""
    prefix = re.search(r"^prefix of (\d+) tokens", entry.workload)
    if prefix is None or "recompute" not in entry.metric or entry.plain_unit != "ms":
        return None
    setup = Setup(node_of(entry), model_named(entry.model), "native", 1, "vllm")
    came = seen(setup, Load(1, 1, _count(prefix[1]), 1))
    return Prediction(came.ttft_ps / PS_PER_MS, "single prefills")


def prefix_cut(entry: Entry) -> Prediction | None:
    """How much sooner a prompt is computed of which most is cached."""
    found = re.search(r"single request, (\d+)k input tokens, (\d+)% cached", entry.workload)
    if found is None or "prefill time" not in entry.metric:
        return None
    tokens = _count(found[1]) * 1000
    cached = tokens * _count(found[2]) // 100
    server = replica(Setup(node_of(entry), "llama-3.1-70b", "bf16", 8, "vllm"))
    whole, rest = (server.timing.prefill_ps([chunk]) for chunk in ((tokens, 0), (tokens - cached, cached)))
    return Prediction(100 * (1 - rest / whole), "prefix cached")


def _setup(entry: Entry) -> Setup:
    """The replica of an entry, if it is one of tensor parallelism alone."""
    tensor_parallel = re.match(r"TP(\d+)\b", entry.parallelism)
    if tensor_parallel is None or re.search(r"\bEP\d", entry.parallelism):
        raise UnsupportedError(
            "experts or attention spread over replicas (EP, DP attention) are not modelled"
        )
    model = model_named(entry.model.replace("Llama-3-70B", "Llama-3.1-70B"))
    return Setup(node_of(entry), model, entry.precision, int(tensor_parallel[1]), "trtllm")


def _count(text: str) -> int:
    return int(text.replace(",", ""))
