"""In which precision a checkpoint is, and which parts of its layers it leaves alone.

A `quantization_config` names a format and, by name, prefix, wildcard or expression, the modules that keep
theirs. A part of a layer (sim.catalog.matrix) is kept if all of its modules are; a list that keeps some
modules of a part and not others is refused. Sources: transformers (quantizers), compressed-tensors, NVIDIA
ModelOpt. Ignores: precision of activations and of the KV cache, which the scenario states.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sim.base.errors import ConfigError, did_you_mean
from sim.catalog.attention import Attention, LatentAttention
from sim.catalog.huggingface.families import Family
from sim.catalog.huggingface.keys import Keys
from sim.catalog.layer import Layer
from sim.catalog.precision import UNQUANTISED
from sim.config.marks import Node

METHODS = {
    "fp8": "fp8",
    "fbgemm_fp8": "fp8",
    "mxfp4": "mxfp4",
    "nvfp4": "fp4",
    "modelopt_fp4": "fp4",
}
ALGORITHMS = {"FP8": "fp8", "FP8_PB_WO": "fp8", "NVFP4": "fp4", "MXFP4": "mxfp4"}
BITS = {("float", 8): "fp8", ("int", 4): "int4"}
FLOAT4_GROUPS = {16: "fp4", 32: "mxfp4"}
LISTS = ("modules_to_not_convert", "ignored_layers", "ignore", "exclude_modules")
OUTER = ("model", "model.language_model", "language_model.model", "backbone")
MOE_NAMES = ("mlp.", "block_sparse_moe.", "feed_forward.", "mixer.")
UP_DOWN = ("gate_proj", "up_proj", "down_proj")
OUTPUTS = (("self_attn.o_proj",), ("linear_attn.out_proj",), ("mixer.o_proj",), ("mixer.out_proj",))
Spellings = tuple[tuple[str, ...], ...]


def native_precision(keys: Keys | None) -> str:
    """The precision of the quantised parts of a checkpoint."""
    if keys is None:
        return UNQUANTISED
    groups = keys.section("config_groups")
    algorithm = keys.find("quant_algo")
    if algorithm is not None:
        return _looked_up(keys, "quant_algo", ALGORITHMS)
    if groups is not None:
        return _of_groups(groups)
    method = keys.word("quant_method")
    if method in ("gptq", "awq", "auto-round", "gptq_marlin"):
        return _of_bits(keys, "int", keys.count("bits", "w_bit"), 128)
    return _looked_up(keys, "quant_method", METHODS)


def _looked_up(keys: Keys, name: str, known: dict[str, str]) -> str:
    word = keys.word(name)
    if word not in known:
        raise keys.error(name, f"'{word}' is not understood", did_you_mean(word, known))
    return known[word]


def _of_groups(groups: Keys) -> str:
    """The one format of all groups of compressed-tensors."""
    found: dict[str, str] = {}
    for name in groups.node.items:
        group = groups.section(name)
        assert group is not None
        if any(text != "Linear" for text, _ in group.texts("targets")):
            raise group.error("targets", "only groups of all Linear modules are modelled")
        weights = group.section("weights")
        if weights is None:
            raise group.missing("weights")
        size = weights.optional_count("group_size") or 16
        found[name] = _of_bits(weights, weights.word("type"), weights.count("num_bits"), size)
    if len(set(found.values())) != 1:
        last = list(found)[-1] if found else ""
        raise groups.error(last, "groups of different formats are not modelled")
    return next(iter(found.values()))


def _of_bits(keys: Keys, kind: str, bits: int, group: int) -> str:
    if (kind, bits) == ("float", 4) and group in FLOAT4_GROUPS:
        return FLOAT4_GROUPS[group]
    if (kind, bits) not in BITS:
        name = "num_bits" if keys.find("num_bits") else "bits"
        raise keys.error(name, f"{bits} bits of type {kind} are not modelled", "int 4, float 4 or float 8")
    return BITS[kind, bits]


def kept_parts(keys: Keys | None, family: Family, stack: Sequence[Layer]) -> list[tuple[str, ...]]:
    """For each layer the parts that stay unquantised."""
    patterns = [] if keys is None else [pattern for name in LISTS for pattern in keys.texts(name)]
    if not patterns:
        return [()] * len(stack)
    matching = [(_matcher(text), text, node) for text, node in patterns]
    found = []
    for i, layer in enumerate(stack):
        parts = dict.fromkeys(matrix.part for matrix in layer.matrices(1))
        modules = _modules(layer, family.has_dense_beside_experts)
        spellings = {part: names for part, names in modules.items() if part in parts}
        found.append(tuple(part for part, names in spellings.items() if _is_kept(i, names, matching)))
    return found


Matching = Sequence[tuple[re.Pattern[str], str, Node]]


def _is_kept(i: int, spellings: Sequence[Sequence[str]], matching: Matching) -> bool:
    """Whether all modules of a part are kept, in one of the ways they may be called."""
    for modules in spellings:
        hits = {
            module: next((entry for entry in matching if _matches(entry[0], i, module)), None)
            for module in modules
        }
        if all(hits.values()):
            return True
        for module, hit in hits.items():
            if hit is not None:
                raise _partly(i, module, hit)
    return False


def _partly(i: int, module: str, hit: tuple[re.Pattern[str], str, Node]) -> ConfigError:
    _, text, node = hit
    problem = f"'{text}' keeps layers.{i}.{module} alone, not the whole part of the layer"
    hint = "name all projections of the part, or none; parts in two precisions are not modelled"
    return node.mark.error("quantization_config", problem, hint)


def _matches(pattern: re.Pattern[str], i: int, module: str) -> bool:
    return any(pattern.match(f"{outer}.layers.{i}.{module}") for outer in OUTER)


def _matcher(text: str) -> re.Pattern[str]:
    """An expression for the modules that a pattern means, those below it included."""
    if text.startswith("re:"):
        return re.compile(text[3:])
    before, found, after = text.partition("layers.")
    inner = found + after if before.removesuffix(".") in OUTER else text
    body = "".join(".*" if c == "*" else re.escape(c) for c in inner)
    return re.compile(rf"(.*\.)?{body}(\..*)?$")


def _modules(layer: Layer, is_dense_beside: bool) -> dict[str, Spellings]:
    """The modules of each part of a layer, in the ways they may be called."""
    found: dict[str, Spellings] = {}
    if layer.attention is not None:
        found["attention"] = _attention_modules(layer.attention)
        found["attention_output"] = OUTPUTS
    found["mlp"] = _up_down(("mlp.", "mixer."))
    found["experts"] = _up_down([f"{outer}experts.0." for outer in (("",) if is_dense_beside else MOE_NAMES)])
    shared = [f"{outer}{word}." for outer in MOE_NAMES for word in ("shared_experts", "shared_expert")]
    found["shared_experts"] = _up_down(("mlp.",) if is_dense_beside else shared)
    return found


def _up_down(outers: Sequence[str]) -> Spellings:
    return tuple(tuple(f"{outer}{name}" for name in UP_DOWN) for outer in outers)


def _attention_modules(attention: Attention) -> Spellings:
    if isinstance(attention, LatentAttention):
        query = ("q_a_proj", "q_b_proj") if attention.query_rank is not None else ("q_proj",)
        names = (*query, "kv_a_proj_with_mqa", "kv_b_proj")
        return (tuple(f"self_attn.{name}" for name in names),)
    projections = ("q_proj", "k_proj", "v_proj")
    return (
        tuple(f"self_attn.{name}" for name in projections),
        tuple(f"mixer.{name}" for name in projections),
        ("linear_attn.in_proj_qkv", "linear_attn.in_proj_z"),
        ("linear_attn.in_proj_qkvz",),
        ("mixer.in_proj",),
    )
