"""Times of a replica from the measured kernels of NVIDIA's aiconfigurator-core, asked once and then kept.

Model: the package is asked for whole prefills and decode steps on a grid of sizes, for the GPU, model,
precisions, parallelism and engine of a placement. What it says is written as a device file into the cache;
from there it is a measured table like any other (sim.timing.measured), so that a simulation never waits for
the package, and what lies outside of the grid is told. Times are of the GPU alone: host times are the
engine's.
Units: the package speaks of milliseconds, device files of microseconds.
Source: aiconfigurator-core 0.12.0, Apache-2.0, https://pypi.org/project/aiconfigurator-core/0.12.0/.
Ignores: mixed steps as the package counts them, its corrections for unequal lengths, and its disk access on
the first question.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

from sim.base.errors import UnsupportedError, listed
from sim.config.device import Device
from sim.config.dump import dump
from sim.timing.placement import Placement

PACKAGE, VERSION, RELEASED = "aiconfigurator-core", "0.12.0", "2026-09"
INSTALL = "pip install 'kvfabric[silicon]', or kind: roofline"
BACKENDS = ("trtllm", "vllm", "sglang")
SYSTEMS: Mapping[str, str] = {
    "a100-sxm-80gb": "a100_sxm",
    "h100": "h100_sxm",
    "h100-pcie": "h100_pcie",
    "h200": "h200_sxm",
    "b200": "b200_sxm",
    "b300": "b300_sxm",
    "gb200": "gb200",
    "gb300": "gb300",
    "l4": "l4",
    "l40s": "l40s",
    "rtx-pro-6000-server": "rtx_pro_6000_server",
}
"""What the package calls the GPUs of the catalogue."""

MODELS: Mapping[str, str] = {
    "llama-3.1-8b": "meta-llama/Meta-Llama-3.1-8B",
    "llama-3.1-70b": "meta-llama/Meta-Llama-3.1-70B",
    "llama-3.3-70b": "meta-llama/Meta-Llama-3.1-70B",
    "llama-3.1-405b": "meta-llama/Meta-Llama-3.1-405B",
    "llama-4-scout": "meta-llama/Llama-4-Scout-17B-16E-Instruct",
    "llama-4-maverick": "meta-llama/Llama-4-Maverick-17B-128E-Instruct",
    "mixtral-8x7b": "mistralai/Mixtral-8x7B-v0.1",
    "qwen3-8b": "Qwen/Qwen3-8B",
    "qwen3-32b": "Qwen/Qwen3-32B",
    "qwen3-30b-a3b": "Qwen/Qwen3-30B-A3B",
    "qwen3-235b-a22b": "Qwen/Qwen3-235B-A22B",
    "deepseek-v3": "deepseek-ai/DeepSeek-V3",
    "deepseek-r1": "deepseek-ai/DeepSeek-R1",
    "kimi-k2": "moonshotai/Kimi-K2-Instruct",
    "gpt-oss-20b": "openai/gpt-oss-20b",
    "gpt-oss-120b": "openai/gpt-oss-120b",
}
"""What the package calls the models of the catalogue; shapes of the 70B models are one."""

PRODUCTS: Mapping[str, str | None] = {"bf16": "bfloat16", "fp8": "fp8", "fp4": "nvfp4", "native": None}
CACHES: Mapping[str, str] = {"bf16": "bfloat16", "fp8": "fp8"}
GRID = 1
"""Counts up when the sizes below change, so that answers on other grids are not taken for these."""

BATCHES = (1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 1024, 2048)
CONTEXTS = (128, 512, 2048, 8192, 32_768, 131_072)
PROMPTS = (16, 128, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536)
PREFIXES = (512, 2048, 8192, 32_768)
TOGETHER = (2, 4)
TOGETHER_TOKENS = 2048


class Asked(Protocol):
    """What is asked of the package; both answers are milliseconds, and `isl` contains the prefix."""

    def predict_prefill_latency(self, bs: int, isl: int, prefix: int = 0) -> float:
        """A prefill of a batch of equal prompts."""
        ...

    def predict_decode_latency(self, bs: int, isl: int, osl: int = 2) -> float:
        """A decode step of sequences of equal context."""
        ...


def silicon_file(placement: Placement) -> Path:
    """The device file of a placement, made where it is not there yet."""
    path = cache_folder() / f"{_name(placement)}.yaml"
    if not path.is_file():
        device = device_of_answers(placement, _engine(placement))
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f"{path.name}.part")
        beside.write_text(dump(device, path.parent, in_rows=True), encoding="utf-8")
        beside.replace(path)
    return path


def cache_folder() -> Path:
    """Where answers are kept."""
    import pooch  # noqa: PLC0415

    return Path(pooch.os_cache("kvfabric")) / f"silicon-{VERSION}-grid-{GRID}"


def device_of_answers(placement: Placement, engine: Asked) -> Device:
    """Ask for every size of the grid."""
    return Device.model_validate(
        {
            "sim": 1,
            "name": _name(placement),
            "hardware": {
                "catalogue": placement.gpu.name,
                "gpu": placement.gpu.title,
                "gpus": placement.shard.tp,
            },
            "origin": {
                "date": RELEASED,
                "command": f"asked of {PACKAGE}",
                "software": {PACKAGE: VERSION},
                "source": f"NVIDIA {PACKAGE} {VERSION}: kernels that it measured, added up by its own model",
                "licence": "Apache-2.0",
            },
            "steps": [_steps(placement, engine)],
        }
    )


def _steps(placement: Placement, engine: Asked) -> dict[str, Any]:
    """Its answers as a set of steps."""
    shard, longest = placement.shard, placement.shard.model.max_context
    try:
        prefill = [_row(*case, engine) for case in _prefills(longest)]
        decode = [
            {
                "batch": batch,
                "context": tokens,
                "median_us": 1e3 * engine.predict_decode_latency(batch, tokens),
            }
            for batch in BATCHES
            for tokens in CONTEXTS
            if tokens <= longest
        ]
    except Exception as failure:
        raise _refusal(failure) from failure
    return {
        "name": shard.model.name.replace(".", "_"),
        "model": shard.model.name,
        "weights": shard.weights,
        "kv": shard.kv,
        "tp": shard.tp,
        "clock": "gpu",
        "page_tokens": placement.engine.page_tokens,
        "attention": f"those of {placement.engine.name}",
        "prefill": prefill,
        "decode": decode,
    }


def _prefills(longest: int) -> Iterator[tuple[int, int, int]]:
    """Prompts, new and cached tokens."""
    for new in PROMPTS:
        for cached in (0, *PREFIXES):
            if new + cached <= longest:
                yield 1, new, cached
    for prompts in TOGETHER:
        yield prompts, TOGETHER_TOKENS, 0


def _row(prompts: int, new: int, cached: int, engine: Asked) -> dict[str, Any]:
    taken_ms = engine.predict_prefill_latency(prompts, new + cached, cached)
    return {"prompts": prompts, "new": new, "cached": cached, "median_us": 1e3 * taken_ms}


def _engine(placement: Placement) -> Asked:
    """The package's own engine for a placement."""
    system, model, backend = _names(placement)
    _check_installed()
    from aiconfigurator_core.sdk.engine import EngineHandle  # noqa: PLC0415 - only where it is installed

    shard = placement.shard
    products = PRODUCTS[shard.weights]
    log = logging.getLogger("aiconfigurator_core")
    log.setLevel(logging.ERROR)
    options = {
        "tp_size": shard.tp,
        "moe_tp_size": shard.tp,
        "moe_ep_size": 1,
        "gemm_quant_mode": products,
        "moe_quant_mode": products,
        "kvcache_quant_mode": CACHES[shard.kv],
    }
    try:
        engine: Asked = EngineHandle.compile(model, system, backend, **options)
    except Exception as failure:
        raise _refusal(failure) from failure
    return engine


def _check_installed() -> None:
    """Refuse where the package is missing, or another version of it."""
    try:
        found = version(PACKAGE)
    except PackageNotFoundError:
        raise UnsupportedError(f"kind: silicon needs {PACKAGE}, which is not installed", INSTALL) from None
    if found != VERSION:
        raise UnsupportedError(f"kind: silicon needs {PACKAGE} {VERSION}, and {found} is installed", INSTALL)


def _names(placement: Placement) -> tuple[str, str, str]:
    """System, model and backend as the package calls them; refuses what it has no name for."""
    shard, engine, gpu = placement.shard, placement.engine.name, placement.gpu.name
    for what, name, names in (
        ("GPU", gpu, tuple(SYSTEMS)),
        ("model", shard.model.name, tuple(MODELS)),
        ("engine", engine, BACKENDS),
        ("weights in", shard.weights, tuple(PRODUCTS)),
        ("KV in", shard.kv, tuple(CACHES)),
    ):
        if name not in names:
            raise UnsupportedError(f"{PACKAGE} knows no {what} {name}", listed(names, "or"))
    if placement.collective is not None and placement.collective.wire is not None:
        raise UnsupportedError("kind: silicon for replicas of several NVLink domains", "kind: roofline")
    return SYSTEMS[gpu], MODELS[shard.model.name], engine


def _name(placement: Placement) -> str:
    """A name that says everything that an answer depends on."""
    system, _, backend = _names(placement)
    shard = placement.shard
    parts = (system.replace("_", "-"), shard.model.name, shard.weights, shard.kv, f"tp{shard.tp}", backend)
    return "-".join(parts).replace(".", "_")


def _refusal(failure: Exception) -> UnsupportedError:
    """What the package says when it cannot answer, in one line."""
    words = str(failure).strip().splitlines()
    told = words[0][:160] if words else type(failure).__name__
    return UnsupportedError(f"{PACKAGE} cannot say: {told}", "another engine or precision, or kind: roofline")
