"""The simulator against closed forms: queues, shares of links, decode in closed form, memory, the roofline.

- M/D/1: a prefill replica that computes equal prompts one by one, under Poisson arrivals of load r, makes
  them wait r / (2 (1 - r)) of a service in the mean (Pollaczek and Khinchine).
- One user in closed loop: TTFT is a prefill, TPOT the mean of the steps of its growing context.
- Max-min shares: of three links of capacity 1 in a row, one flow crosses all and one flow each: all get half
  (Bertsekas and Gallager, Data Networks, 6.5.2).
- KV of MLA: rank + rope numbers a layer and token; of grouped heads 2 x heads x size.
- A large product reaches peak x efficiency, a small one bandwidth x efficiency.
- An all-reduce of large size among n GPUs of a ring sends 2 (n - 1) / n of its bytes.

What is called measured is the closed form. Units: as told by each row.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import fmean

from sim import api
from sim.catalog.load import load_catalog
from sim.catalog.matrix import Matrix
from sim.catalog.precision import precision
from sim.network.maxmin import Link, MaxMin, Rated
from sim.resolve import resolve
from sim.timing.collective import Collective
from sim.timing.fixed import FixedTiming
from sim.timing.gemm import gemm
from sim.timing.placement import Shard, place
from sim.timing.rates import Rates
from sim.validate.closedloop import ClosedLoop, Load, Replica, Rule
from sim.validate.comparison import Comparison, Comparisons

TERA = 10**12
LOADS = (0.3, 0.5, 0.7)
SEEDS = (1, 2, 3)
KV_NUMBERS = {
    "deepseek-r1": (512 + 64) * 61,
    "llama-3.1-8b": 2 * 8 * 128 * 32,
    "llama-3.1-70b": 2 * 8 * 128 * 80,
    "qwen3-235b-a22b": 2 * 4 * 128 * 94,
}
"""Numbers of KV that a token takes, by hand from the shapes that their papers and configs print."""

Row = tuple[str, str, float, float, str]
"""Id, metric, predicted, closed form, unit."""


def theory(scenario: Path) -> Comparisons:
    """Compare with the closed forms; `scenario` is the queue."""
    parts = (_queues(scenario), _one_user(), _shares(), _memory(), _products(), _rings())
    rows = tuple(
        Comparison(
            id=name,
            metric=metric,
            predicted=predicted,
            measured=exact,
            unit=unit,
            group=name.partition("/")[0],
            source="closed form; see sim/validate/theory.py",
        )
        for part in parts
        for name, metric, predicted, exact, unit in part
    )
    return Comparisons("theory", rows)


def _queues(path: Path) -> Iterator[Row]:
    timing = resolve(api.load(path)).plan.prefill.timing
    tokens = 2000
    service_s = timing.prefill_ps([(tokens, 0)]) / TERA
    for load in LOADS:
        rate = f"workload.arrivals.rate={load / service_s:.6f} req/s"
        waits = [
            float(api.run(api.load(path, [rate, f"run.seed={seed}"])).requests["ttft_s"].mean()) - service_s
            for seed in SEEDS
        ]
        exact = load / (2 * (1 - load))
        yield f"queue M-D-1, mean wait/load {load}", "ratio", fmean(waits) / service_s, exact, "services"


def _one_user() -> Iterator[Row]:
    timing = FixedTiming(
        prefill_base_ps=10**9,
        prefill_per_token_ps=10**6,
        decode_base_ps=5 * 10**9,
        decode_per_sequence_ps=10**8,
        decode_per_token_ps=10**5,
    )
    rule = Rule(token_budget=8192, max_sequences=8, is_chunked=True, mixes=True)
    prompt, output = 1000, 101
    seen = ClosedLoop(Replica(timing, rule, 10**6), Load(1, 4, prompt, output)).run()
    steps = output - 1
    step_ps = 5 * 10**9 + 10**8 + 10**5 * (prompt + 1 + (steps - 1) / 2)
    yield "one user/ttft", "ttft", seen.ttft_ps / 1e9, (10**9 + prompt * 10**6) / 1e9, "ms"
    yield "one user/tpot", "tpot", seen.tpot_ps / 1e9, step_ps / 1e9, "ms"
    whole_s = (10**9 + prompt * 10**6 + steps * step_ps) / TERA
    yield "one user/throughput", "throughput", seen.output_tokens_per_s, output / whole_s, "tokens/s"


def _shares() -> Iterator[Row]:
    links = [Link(number, 1.0) for number in range(3)]
    solver: MaxMin[Rated] = MaxMin()
    flows = [Rated(tuple(links)), *(Rated((link,)) for link in links)]
    for flow in flows:
        solver.add(flow)
    for number, flow in enumerate(flows):
        yield f"max-min shares/flow {number}", "bandwidth", flow.rate, 0.5, "of a link"


def _memory() -> Iterator[Row]:
    models = load_catalog().models
    for name, numbers in KV_NUMBERS.items():
        yield (
            f"KV of a token/{name}",
            "ratio",
            float(models[name].kv_bytes_per_token("fp8")),
            numbers,
            "bytes",
        )


def _products() -> Iterator[Row]:
    catalog = load_catalog()
    placement = place(catalog, Shard(catalog.models["llama-3.1-8b"], "bf16", "bf16", 1), "hgx-h200")
    rates, bf16 = Rates.of(placement), precision("bf16")
    gpu, part = placement.gpu, placement.efficiency
    n = k = 16384
    many, few = 10**6, 1
    time_ps = gemm(rates, Matrix("mlp", n, k), bf16)(many)
    peak = gpu.flops("bf16") * part.gemm("bf16")
    yield "products/large", "throughput", 2 * many * n * k / time_ps, peak / TERA, "TFLOPS"
    time_ps = gemm(rates, Matrix("mlp", n, k), bf16)(few) - rates.kernel_ps
    moved = 2 * (n * k + few * (n + k))
    rate = gpu.memory_bytes_per_s * part.gemm_memory
    yield "products/small", "bandwidth", moved / time_ps, rate / TERA, "TB/s"


def _rings() -> Iterator[Row]:
    link = load_catalog().links["nvlink-4"]
    size = 2**36
    for gpus in (2, 4, 8):
        time_s = Collective(gpus, link, None).curve()(size) / TERA
        exact = 2 * (gpus - 1) / gpus * size / link.effective_bytes_per_s
        yield f"ring all-reduce/{gpus} GPUs", "latency", time_s, exact, "s"
