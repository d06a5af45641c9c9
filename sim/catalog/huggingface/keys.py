"""The keys of a config.json, asked for one by one; each mistake is told at its line.

A config holds far more than shapes (token ids, rotary constants, defaults of generation), and new models
bring new keys. So a key that nobody asked for is passed over, unless its name sounds of shapes: then `close`
refuses it rather than guess that it changes nothing. What is null counts as absent.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sim.base.errors import ConfigError, did_you_mean, shown
from sim.config.marks import Node

SOUNDS_OF_SHAPES = re.compile(
    r"layer|head|hidden|dim|rank|expert|moe|mlp|ffn|window|chunk|attn|attention|latent|compress|index|ssm|mamba"
    r"|conv|state|linear|pattern|interval|freq|sparse|shared|kv|query|block|quant|hybrid|intermediate|vocab|tie"
    r"|altup|laurel|ratio|width|group|multi_query|parallel|bits"
)
HARMLESS = re.compile(
    r".*(dropout|_eps|epsilon|_factor|_coef|_alpha|_token_id|_token_index|_theta|_scaling|_dtype|_base|_scale)"
    r"|(rope|rotary|partial|output|use_cache|init|aux|router_aux|norm_topk|scoring|topk_|pretraining|time_step)_?.*"
    r"|initializer.*|layer_norm.*|layernorm.*|.*_hidden_act|hidden_act.*|n_group|topk_group|num_expert_group"
    r"|max_window_layers|cache_implementation|chunk_size_feed_forward|no_repeat_ngram_size|num_beam_groups"
    r"|encoder_no_repeat_ngram_size|cross_attention_hidden_size|tie_encoder_decoder|add_cross_attention|ep_size"
    r"|query_pre_attn_scalar|.*logit_softcapping|attn_temperature_tuning|_attn_implementation.*|use_mamba_kernels"
    r"|residual_in_fp32|rescale_prenorm_residual|attn_implementation|hidden_activation|seq_aux|moe_renormalize"
    r"|.*router_activation_func|moe_router_dtype|num_logits_to_keep|is_encoder_decoder|pruned_heads|use_bidirectional.*"
    r"|vocab_size_per_layer_input|id2label|label2id|.*multiplier|attention_value_scale|.*overlap|swa_rope.*"
)


class Keys:
    """The items of one mapping. `path` is its place in the file, dotted, with a dot at the end."""

    def __init__(self, node: Node, path: str = "") -> None:
        self.node, self.path = node, path
        self._items = {key: item for key, item in node.items.items() if item.value is not None}
        self._asked: set[str] = set()

    def find(self, *names: str) -> str | None:
        """The first of some names that is there; they count as asked for."""
        self._asked.update(names)
        return next((name for name in names if name in self._items), None)

    def optional_count(self, *names: str) -> int | None:
        """A whole number of at least 0 under one of some names, or None."""
        name = self.find(*names)
        if name is None:
            return None
        value = self._items[name].value
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.error(name, f"{shown(self.plain(name))} is not a whole number of at least 0")
        return value

    def count(self, *names: str) -> int:
        """A whole number above 0 under one of some names."""
        value = self.optional_count(*names)
        if value is None:
            raise self.missing(names[0])
        if value == 0:
            raise self.error(self.find(*names) or names[0], "must be above 0")
        return value

    def fraction(self, name: str) -> float:
        """A number above 0."""
        if self.find(name) is None:
            raise self.missing(name)
        value = self._items[name].value
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise self.error(name, f"{shown(self.plain(name))} is not a number above 0")
        return float(value)

    def flag(self, name: str, default: bool = False) -> bool:
        """A true or false, or the default."""
        if self.find(name) is None:
            return default
        value = self._items[name].value
        if not isinstance(value, bool):
            raise self.error(name, f"{shown(self.plain(name))} is neither true nor false")
        return value

    def word(self, name: str, default: str | None = None) -> str:
        """A text, or the default."""
        if self.find(name) is None:
            if default is None:
                raise self.missing(name)
            return default
        value = self._items[name].value
        if not isinstance(value, str):
            raise self.error(name, f"{shown(self.plain(name))} is not text", "put it in quotes")
        return value

    def elements(self, name: str, length: int | None = None) -> list[Node]:
        """The items of a list, of which there must be as many as layers where `length` is given."""
        if self.find(name) is None:
            return []
        node = self._items[name]
        if not isinstance(node.value, list):
            raise self.error(name, f"{shown(self.plain(name))} is not a list")
        if length is not None and len(node.elements) != length:
            raise self.error(
                name, f"has {len(node.elements)} items for {length} layers", "write one for each"
            )
        return node.elements

    def words(self, name: str, choices: Sequence[str], length: int | None) -> list[str]:
        """A list with one of some words for each layer."""
        found = []
        for position, item in enumerate(self.elements(name, length)):
            if item.value not in choices:
                problem = f"{shown(item.value)} is not understood"
                raise item.mark.error(
                    f"{self.path}{name}.{position}", problem, did_you_mean(str(item.value), choices)
                )
            found.append(str(item.value))
        return found

    def switches(self, name: str, length: int) -> list[bool]:
        """A list with 0 or 1 for each layer."""
        found = []
        for position, item in enumerate(self.elements(name, length)):
            if item.value not in (0, 1):
                raise item.mark.error(
                    f"{self.path}{name}.{position}", f"{shown(item.value)} is neither 0 nor 1"
                )
            found.append(bool(item.value))
        return found

    def indices(self, name: str) -> list[int]:
        """A list of whole numbers."""
        found = []
        for position, item in enumerate(self.elements(name)):
            if isinstance(item.value, bool) or not isinstance(item.value, int):
                raise item.mark.error(
                    f"{self.path}{name}.{position}", f"{shown(item.value)} is not a whole number"
                )
            found.append(item.value)
        return found

    def is_list(self, name: str) -> bool:
        """Whether a list is there."""
        return self.find(name) is not None and isinstance(self._items[name].value, list)

    def section(self, *names: str) -> Keys | None:
        """The mapping under one of some names, or None."""
        name = self.find(*names)
        if name is None:
            return None
        if not self._items[name].is_mapping:
            raise self.error(name, f"{shown(self.plain(name))} is not a mapping")
        return Keys(self._items[name], f"{self.path}{name}.")

    def sections(self, name: str, length: int) -> list[Keys]:
        """A list with a mapping for each layer."""
        return [
            Keys(item, f"{self.path}{name}.{position}.")
            for position, item in enumerate(self.elements(name, length))
        ]

    def texts(self, *names: str) -> list[tuple[str, Node]]:
        """The texts of a list, each with its place."""
        name = self.find(*names)
        if name is None:
            return []
        return [(str(item.value), item) for item in self.elements(name)]

    def plain(self, name: str) -> object:
        """A value for a message."""
        value = self._items[name].value
        return value if not isinstance(value, list | dict) else ([] if isinstance(value, list) else {})

    def missing(self, name: str) -> ConfigError:
        """The mistake that a key is not there."""
        hint = f'add "{name}"; it cannot be told from the other keys'
        return self.node.mark.error(f"{self.path}{name}", "missing", hint)

    def error(self, name: str, problem: str, hint: str | None = None) -> ConfigError:
        """A mistake at a key that is there, or at the mapping where it is not."""
        node = self._items.get(name, self.node)
        return node.mark.error(f"{self.path}{name}", problem, hint)

    def refuse(self, *names: str) -> None:
        """Refuse features that are known, and known not to be modelled, unless they are off."""
        for name in names:
            if self.find(name) is not None and self._items[name].value not in (False, 0, "", []):
                raise self.error(name, "is not modelled", "its layers would be counted wrongly")

    def close(self) -> None:
        """Refuse keys that nobody asked for and that sound of shapes, unless they are switched off."""
        for name, item in self._items.items():
            if name in self._asked or not item.value or HARMLESS.fullmatch(name):
                continue
            if SOUNDS_OF_SHAPES.search(name):
                raise self.error(
                    name,
                    f"not understood for model_type '{self.word('model_type', '?')}'",
                    "it may change shapes: remove it if you know that it does not",
                )
