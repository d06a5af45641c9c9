"""The stack of layers of a config.json: attention and MLP of each, and hybrids that list their blocks."""

from __future__ import annotations

from dataclasses import replace

from sim.base.errors import listed
from sim.catalog.attention import GroupedAttention
from sim.catalog.huggingface.attentions import attentions, grouped, mamba2
from sim.catalog.huggingface.families import Family
from sim.catalog.huggingface.keys import Keys
from sim.catalog.huggingface.mlps import EXPERTS, dense, mlps, moe
from sim.catalog.layer import Layer
from sim.catalog.mlp import DenseMlp, MoeMlp
from sim.catalog.reach import FULL

MAMBA, ATTENTION, MLP, MOE = "M", "*", "-", "E"
BLOCKS = {"mamba": MAMBA, "attention": ATTENTION, "mlp": MLP, "moe": MOE}
FURTHER_BLOCKS = ("mtp_hybrid_override_pattern", "mtp_layers_block_type")
WIDTH_STEP = 256  # widths of searched MLPs are whole multiples


def stack(keys: Keys, family: Family) -> list[Layer]:
    """All layers, in order."""
    if keys.find("hybrid_override_pattern", "layers_block_type") is not None:
        return pattern_stack(keys, family)
    layers = keys.count("num_hidden_layers")
    if keys.find("block_configs") is not None:
        return searched_stack(keys, family, layers)
    hidden = keys.count("hidden_size")
    made: dict[tuple[int, int], Layer] = {}  # by identity: layers are many, and of few kinds
    found = []
    for attention, mlp in zip(attentions(keys, family, layers), mlps(keys, family, layers), strict=True):
        kind = (id(attention), id(mlp))
        if kind not in made:
            norms = family.norms + (family.moe_norms if isinstance(mlp, MoeMlp) else 0)
            made[kind] = Layer(attention, mlp, hidden * norms)
        found.append(made[kind])
    return found


def pattern_stack(keys: Keys, family: Family) -> list[Layer]:
    """Nemotron-H: each layer is attention, Mamba-2, an MLP or experts, said by a letter or a word."""
    hidden = keys.count("hidden_size")
    experts = keys.optional_count(*EXPERTS)
    letters = block_letters(keys, bool(experts))
    keys.find("intermediate_size", "moe_intermediate_size", "sliding_window", *FURTHER_BLOCKS)
    made: dict[str, Layer] = {}
    for letter in dict.fromkeys(letters):
        if letter == MAMBA:
            made[letter] = Layer(mamba2(keys), None, hidden)
        elif letter == ATTENTION:
            made[letter] = Layer(grouped(keys, family, FULL), None, hidden)
        elif letter == MLP:
            made[letter] = Layer(None, dense(keys, family), hidden)
        else:
            made[letter] = Layer(None, moe(keys, family, experts or 0), hidden)
    return [made[letter] for letter in letters]


def block_letters(keys: Keys, has_experts: bool) -> str:
    """One letter for each layer."""
    known = {word: letter for word, letter in BLOCKS.items() if has_experts or letter != MOE}
    layers = keys.optional_count("num_hidden_layers")
    if keys.find("layers_block_type") is not None:
        words = keys.words("layers_block_type", tuple(known), layers)
        return "".join(known[word] for word in words)
    pattern = keys.word("hybrid_override_pattern")
    wrong = next((letter for letter in pattern if letter not in known.values()), None)
    if wrong is not None:
        problem = f"'{wrong}' at place {pattern.index(wrong) + 1} is not understood"
        raise keys.error("hybrid_override_pattern", problem, f"write {listed(tuple(known.values()), 'or')}")
    if layers is not None and len(pattern) != layers:
        problem = f"has {len(pattern)} letters for {layers} layers"
        raise keys.error("hybrid_override_pattern", problem, "write one for each")
    return pattern


def searched_stack(keys: Keys, family: Family, layers: int) -> list[Layer]:
    """Nemotron-NAS: each layer says which attention and which MLP it has, if any."""
    hidden, heads = keys.count("hidden_size"), keys.count("num_attention_heads")
    keys.find("num_key_value_heads", "intermediate_size")
    found = []
    for block in keys.sections("block_configs", layers):
        attention = _searched_attention(block, keys, family, heads)
        width = _searched_width(block, hidden)
        mlp = DenseMlp(hidden, width, family.is_gated) if width else None
        found.append(Layer(attention, mlp, hidden * ((attention is not None) + (mlp is not None))))
    return found


def _searched_attention(block: Keys, keys: Keys, family: Family, heads: int) -> GroupedAttention | None:
    section = block.section("attention")
    if section is None:
        raise block.missing("attention")
    section.refuse("replace_with_linear", "sparsify", "window_length", "num_sink_tokens", "unshifted_sink")
    if section.flag("no_op"):
        return None
    base = grouped(keys, family, FULL)
    return replace(base, kv_heads=heads // section.count("n_heads_in_group"))


def _searched_width(block: Keys, hidden: int) -> int:
    section = block.section("ffn")
    if section is None:
        raise block.missing("ffn")
    section.refuse("replace_with_linear", "sparsify")
    if section.flag("no_op"):
        return 0
    width = int(2 * section.fraction("ffn_mult") * hidden / 3)
    return -(-width // WIDTH_STEP) * WIDTH_STEP
