"""From the keys of a config.json to the shapes of a model. What is not understood is an error at its key.

A config with a `text_config` describes its language model there; towers for images and sound beside it, and
layers for predicting further tokens, are left out and named.
"""

from __future__ import annotations

from dataclasses import replace

from sim.base.errors import did_you_mean
from sim.catalog.huggingface.families import FAMILIES, Family
from sim.catalog.huggingface.keys import Keys
from sim.catalog.huggingface.quantisation import kept_parts, native_precision
from sim.catalog.huggingface.stacks import stack
from sim.catalog.layer import Layer
from sim.catalog.shapes import Shapes
from sim.config.marks import Node

NESTED = ("text_config", "llm_config", "language_config")
TOWERS = ("vision_config", "audio_config")
FURTHER = ("num_nextn_predict_layers", "num_mtp_modules", "mtp_num_hidden_layers")


def shapes(config: Node) -> Shapes:
    """The shapes that a config.json says."""
    outer = Keys(config)
    nested = outer.section(*NESTED)
    keys = nested or outer
    family_name, family = _family(keys, outer)
    quantisation = outer.section("quantization_config")
    if quantisation is None and nested is not None:
        quantisation = keys.section("quantization_config")
    layers = stack(keys, family)
    if not any(layer.kv_bytes(1, 1) for layer in layers):
        raise keys.error("num_hidden_layers", "models without any KV cache are not modelled")
    native = native_precision(quantisation)
    kept = kept_parts(quantisation, family, layers)
    tied = keys.flag("tie_word_embeddings", outer.flag("tie_word_embeddings", family.tied))
    found = Shapes(
        family=family_name,
        hidden=keys.count("hidden_size"),
        vocab=keys.count("vocab_size"),
        max_context=keys.count("max_position_embeddings"),
        tied_embeddings=tied,
        stack=_shared(layers, kept),
        native=native,
        left_out=_left_out(keys, outer),
    )
    keys.find("quantization_config", "tie_word_embeddings", *TOWERS)
    keys.close()
    return found


def _family(keys: Keys, outer: Keys) -> tuple[str, Family]:
    """The model type; a nested config may leave it to the outer one."""
    at = keys if keys.find("model_type") is not None else outer
    name = at.word("model_type")
    if name not in FAMILIES:
        hint = f"{did_you_mean(name, FAMILIES)} If its layers are those of a known type, write that one"
        raise at.error("model_type", f"'{name}' is not known", hint)
    return name, FAMILIES[name]


def _left_out(keys: Keys, outer: Keys) -> tuple[str, ...]:
    """What the config describes besides the language model."""
    towers = [name for name in TOWERS if outer.find(name) is not None]
    further = [name for name in FURTHER if keys.optional_count(name)]
    keys.find("mtp_use_dedicated_embeddings", "mtp_transformer_layers", "use_mtp")
    return (*towers, *further)


def _shared(layers: list[Layer], kept: list[tuple[str, ...]]) -> tuple[Layer, ...]:
    """The layers with the parts they keep, equal ones as one object."""
    seen: dict[Layer, Layer] = {}
    whole = [
        replace(layer, kept=parts) if parts else layer for layer, parts in zip(layers, kept, strict=True)
    ]
    return tuple(seen.setdefault(layer, layer) for layer in whole)
