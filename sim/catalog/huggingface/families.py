"""What the model types of Hugging Face's transformers take for granted and do not write into a config.json.

One line for each model type: whether attention is latent, which projections have biases, which norms there
are, how windows are dealt out where the config does not list layers, how experts are described. A type that
is not here is refused. Source: the model classes of transformers 5.18; the parameters that follow were
compared with those of the classes themselves, on the configs of public models (see tests/unit/catalog).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True, slots=True)
class Family:
    """The traits of a model type.

    `biases`: none; those of Q, K, V (`qkv`) or of all four (`all`); with `key_` only if `attention_bias` says
    so. `qk_norm`: none, one for each head size, or one for the whole of Q and of K; with `key_` if
    `use_qk_norm` says so. `norms` are vectors of the hidden size in each layer, `moe_norms` further ones
    where there are experts. `windows`: who has them where a `sliding_window` is given but no list of layers:
    all, every second, all but every sixth, or from `max_window_layers` on if `use_sliding_window` says so.
    `expert_width` is the key of the width of an expert. `router` says what it has besides its matrix,
    `shared_width` is the key of a width that always works beside the experts.
    """

    attention: Literal["grouped", "latent"] = "grouped"
    biases: Literal["none", "qkv", "key_qkv", "key_all"] = "key_all"
    qk_norm: Literal["none", "head", "whole", "key_head", "key_whole"] = "none"
    norms: int = 2
    moe_norms: int = 0
    windows: Literal["all", "second", "sixth", "late", "none"] = "none"
    linear: Literal["none", "delta", "kimi"] = "none"
    is_gated: bool = True
    tied: bool = False
    expert_width: str = "moe_intermediate_size"
    router: Literal["plain", "corrected", "biased", "scaled"] = "plain"
    has_expert_biases: bool = False
    has_shared_gate: bool = False
    has_output_gate: bool = False
    shared_width: str | None = None
    has_dense_beside_experts: bool = False


LLAMA = Family()
QWEN2 = Family(biases="qkv", windows="late")
QWEN3 = Family(qk_norm="head", windows="late")
QWEN3_5 = Family(qk_norm="head", linear="delta", has_output_gate=True, has_shared_gate=True)
DEEPSEEK = Family(attention="latent", biases="none", router="corrected")
GEMMA2 = Family(norms=4, windows="second", tied=True)
GEMMA3 = replace(GEMMA2, qk_norm="head", windows="sixth")
GEMMA4 = replace(
    GEMMA3,
    biases="none",
    moe_norms=3,
    windows="none",
    router="scaled",
    shared_width="intermediate_size",
    has_dense_beside_experts=True,
)
LLAMA4 = Family(expert_width="intermediate_size", shared_width="intermediate_size")
MIMO2 = Family(biases="none", router="corrected")
NEMOTRON = Family(norms=1, is_gated=False, router="corrected")

FAMILIES: Mapping[str, Family] = {
    "llama": LLAMA,
    "mistral": Family(biases="none", windows="all"),
    "ministral": Family(biases="none", windows="all"),
    "mixtral": Family(biases="none", windows="all", expert_width="intermediate_size"),
    "phi3": Family(biases="none", windows="all"),
    "granite": LLAMA,
    "seed_oss": LLAMA,
    "smollm3": LLAMA,
    "olmo2": Family(qk_norm="whole"),
    "qwen2": QWEN2,
    "qwen2_vl": QWEN2,
    "qwen2_vl_text": QWEN2,
    "qwen2_5_vl": QWEN2,
    "qwen2_5_vl_text": QWEN2,
    "qwen2_moe": replace(QWEN2, has_shared_gate=True),
    "qwen3": QWEN3,
    "qwen3_moe": QWEN3,
    "qwen3_vl": QWEN3,
    "qwen3_vl_text": QWEN3,
    "qwen3_vl_moe": QWEN3,
    "qwen3_vl_moe_text": QWEN3,
    "qwen3_next": QWEN3_5,
    "qwen3_5": QWEN3_5,
    "qwen3_5_text": QWEN3_5,
    "qwen3_5_moe": QWEN3_5,
    "qwen3_5_moe_text": QWEN3_5,
    "mimo": QWEN2,
    "mimo_v2_flash": MIMO2,
    "gpt_oss": Family(
        windows="second", expert_width="intermediate_size", router="biased", has_expert_biases=True
    ),
    "gemma2": GEMMA2,
    "gemma3": GEMMA3,
    "gemma3_text": GEMMA3,
    "gemma4": GEMMA4,
    "gemma4_text": GEMMA4,
    "glm4_moe": Family(biases="key_qkv", qk_norm="key_head", router="corrected"),
    "glm_moe_dsa": DEEPSEEK,
    "deepseek_v2": replace(DEEPSEEK, router="plain"),
    "deepseek_v3": DEEPSEEK,
    "deepseek_v32": DEEPSEEK,
    "kimi_k2": DEEPSEEK,
    "kimi_linear": replace(DEEPSEEK, linear="kimi"),
    "llama4": LLAMA4,
    "llama4_text": LLAMA4,
    "minimax_m2": Family(
        biases="none", qk_norm="key_whole", expert_width="intermediate_size", router="corrected"
    ),
    "nemotron_h": NEMOTRON,
    "nemotron-nas": LLAMA,
}
