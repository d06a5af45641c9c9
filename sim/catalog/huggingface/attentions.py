"""The attention of each layer, read from a config.json."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sim.catalog.attention import Attention, GroupedAttention, Indexer, LatentAttention, LinearAttention
from sim.catalog.huggingface.families import Family
from sim.catalog.huggingface.keys import Keys
from sim.catalog.reach import FULL, Reach

FULL_WORDS = ("full_attention", "attention", "deepseek_sparse_attention")
WINDOW_WORD, CHUNK_WORD, LINEAR_WORD = "sliding_attention", "chunked_attention", "linear_attention"
NUMBER_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
DELTA_CHUNK = 64  # tokens that kernels of the delta rule take at once


def attentions(keys: Keys, family: Family, layers: int) -> list[Attention]:
    """The attention of each layer, in order."""
    words = layer_words(keys, family, layers)
    readers: dict[str, Callable[[], Attention]] = {
        **dict.fromkeys(FULL_WORDS, lambda: softmax(keys, family, FULL)),
        WINDOW_WORD: lambda: softmax(keys, family, Reach(window=keys.count("sliding_window"))),
        CHUNK_WORD: lambda: softmax(keys, family, Reach(chunk=keys.count("attention_chunk_size"))),
        LINEAR_WORD: lambda: linear(keys, family),
    }
    kinds = {word: readers[word]() for word in dict.fromkeys(words)}
    found = [kinds[word] for word in words]
    return with_shared_indexers(keys, found)


def layer_words(keys: Keys, family: Family, layers: int) -> list[str]:
    """What kind of attention each layer has, in the words of `layer_types`."""
    can_be_linear = family.linear != "none"
    choices = (*FULL_WORDS, WINDOW_WORD, CHUNK_WORD, *((LINEAR_WORD,) if can_be_linear else ()))
    is_listed = keys.find("layer_types") is not None
    if is_listed:
        keys.find("sliding_window", "sliding_window_pattern", "use_sliding_window", "attention_chunk_size")
        keys.find("no_rope_layers", "no_rope_layer_interval", "full_attention_interval")
        return keys.words("layer_types", choices, layers)
    if keys.find("hybrid_layer_pattern") is not None:
        keys.find("sliding_window_size", "attention_chunk_size")
        is_window = keys.switches("hybrid_layer_pattern", layers)
        return [WINDOW_WORD if windowed else FULL_WORDS[0] for windowed in is_window]
    if keys.find("linear_attn_config") is not None and can_be_linear:
        return _kimi_words(keys, layers)
    if keys.find("attn_type_list") is not None:
        if not all(keys.switches("attn_type_list", layers)):
            raise keys.error("attn_type_list", "its linear attention (0) is not modelled")
        return [FULL_WORDS[0]] * layers
    if keys.find("attention_chunk_size") is not None:
        return _chunked_words(keys, layers)
    if can_be_linear:
        interval = keys.count("full_attention_interval")
        return [LINEAR_WORD if (i + 1) % interval else FULL_WORDS[0] for i in range(layers)]
    return _window_words(keys, family, layers)


def _window_words(keys: Keys, family: Family, layers: int) -> list[str]:
    """Who has a window, where no list says so."""
    uses = keys.flag("use_sliding_window", family.windows != "late")
    pattern = keys.optional_count("sliding_window_pattern")
    has_window = keys.find("sliding_window") is not None
    if not uses or not has_window:
        return [FULL_WORDS[0]] * layers
    if family.windows == "none":
        raise keys.error("sliding_window", "it is not said which layers have it", 'add "layer_types"')
    if family.windows == "all":
        return [WINDOW_WORD] * layers
    if family.windows == "late":
        first = keys.count("max_window_layers")
        return [WINDOW_WORD if i >= first else FULL_WORDS[0] for i in range(layers)]
    every = pattern or (2 if family.windows == "second" else 6)
    return [WINDOW_WORD if (i + 1) % every else FULL_WORDS[0] for i in range(layers)]


def _chunked_words(keys: Keys, layers: int) -> list[str]:
    """Llama 4: layers without rotary embedding see everything, by default every fourth."""
    has_rotary = keys.switches("no_rope_layers", layers) if keys.elements("no_rope_layers") else []
    interval = keys.optional_count("no_rope_layer_interval") or 4
    has_rotary = has_rotary or [bool((i + 1) % interval) for i in range(layers)]
    return [CHUNK_WORD if rotary else FULL_WORDS[0] for rotary in has_rotary]


def _kimi_words(keys: Keys, layers: int) -> list[str]:
    """Kimi Linear lists its layers from 1."""
    section = keys.section("linear_attn_config")
    assert section is not None
    full = set(section.indices("full_attn_layers"))
    linear_layers = set(section.indices("kda_layers"))
    if full | linear_layers != set(range(1, layers + 1)) or full & linear_layers:
        raise section.error("kda_layers", f"with full_attn_layers it does not list layers 1 to {layers} once")
    return [FULL_WORDS[0] if i + 1 in full else LINEAR_WORD for i in range(layers)]


def softmax(keys: Keys, family: Family, reach: Reach) -> Attention:
    """Grouped-query or latent attention with a reach."""
    if family.attention == "latent":
        return latent(keys)
    return grouped(keys, family, reach)


def grouped(keys: Keys, family: Family, reach: Reach) -> GroupedAttention:
    """Grouped-query attention; layers of another reach may have other sizes."""
    keys.refuse("num_kv_shared_layers", "multi_query", "sparse_attention_config")
    hidden = keys.count("hidden_size")
    before = "swa_" if reach.window is not None and keys.find("swa_num_attention_heads") else ""
    heads = keys.count(f"{before}num_attention_heads")
    kv_name = f"{before}num_key_value_heads"
    is_global = reach == FULL and keys.find("num_global_key_value_heads", "global_head_dim") is not None
    kv_heads = keys.optional_count(kv_name)
    kv_heads = heads if kv_heads is None else keys.count(kv_name)
    head_dim = _head_dim(keys, before, hidden, heads)
    if is_global:
        kv_heads = keys.optional_count("num_global_key_value_heads") or kv_heads
        head_dim = keys.optional_count("global_head_dim") or head_dim
    if heads % kv_heads:
        raise keys.error(kv_name, f"{heads} heads cannot share {kv_heads} KV heads evenly")
    value_dim = keys.optional_count(f"{before}v_head_dim") or head_dim
    keys_are_values = keys.flag("attention_k_eq_v") and reach == FULL
    return GroupedAttention(
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        value_dim=value_dim,
        reach=reach,
        is_gated=keys.flag("attn_output_gate", family.has_output_gate),
        has_values=not keys_are_values,
        small_parameters=_biases(keys, family, (hidden, heads * head_dim, kv_heads * (head_dim + value_dim)))
        + _norms(keys, family, heads, kv_heads, head_dim)
        + _sinks(keys, family, heads, reach),
    )


def _head_dim(keys: Keys, before: str, hidden: int, heads: int) -> int:
    given = keys.optional_count(f"{before}head_dim", "head_dim", "attention_head_dim")
    if given:
        return given
    if hidden % heads:
        problem = f"missing, and hidden_size {hidden} is no multiple of num_attention_heads {heads}"
        raise keys.error("head_dim", problem, 'add "head_dim"')
    return hidden // heads


def _biases(keys: Keys, family: Family, sizes: tuple[int, int, int]) -> int:
    hidden, query, key_value = sizes
    wanted = keys.flag("attention_bias", family.biases == "qkv")
    if not wanted or family.biases == "none":
        return 0
    return query + key_value + (hidden if family.biases == "key_all" else 0)


def _norms(keys: Keys, family: Family, heads: int, kv_heads: int, head_dim: int) -> int:
    kind = family.qk_norm
    keys.find("qk_norm_type")
    is_used = keys.flag("use_qk_norm") if kind.startswith("key_") else keys.flag("use_qk_norm", True)
    if kind == "none" or not is_used:
        return 0
    return 2 * head_dim if kind.endswith("head") else (heads + kv_heads) * head_dim


def _sinks(keys: Keys, family: Family, heads: int, reach: Reach) -> int:
    """Learned sinks, one number for each head; gpt-oss has them in every layer."""
    kind = "full" if reach == FULL else "swa"
    in_full, in_window = keys.flag("add_full_attention_sink_bias"), keys.flag("add_swa_attention_sink_bias")
    has_sinks = family.has_expert_biases or (in_full if kind == "full" else in_window)
    return heads if has_sinks else 0


def latent(keys: Keys) -> LatentAttention:
    """Multi-head latent attention, with its indexer where there is one."""
    keys.refuse("attention_bias", "mla_use_output_gate", "sliding_window")
    keys.find("head_dim", "qk_head_dim", "num_key_value_heads", "mla_use_nope")
    indexer = None
    if keys.find("index_topk") is not None:
        keys.find("index_topk_freq", "index_topk_pattern", "index_skip_topk_offset")
        keys.find("index_share_for_mtp_iteration", "indexer_rope_interleave")
        sizes = keys.count("index_n_heads"), keys.count("index_head_dim"), keys.count("index_topk")
        indexer = Indexer(*sizes)
    return LatentAttention(
        hidden=keys.count("hidden_size"),
        heads=keys.count("num_attention_heads"),
        query_rank=keys.optional_count("q_lora_rank") or None,
        kv_rank=keys.count("kv_lora_rank"),
        nope_dim=keys.count("qk_nope_head_dim"),
        rope_dim=keys.count("qk_rope_head_dim"),
        value_dim=keys.count("v_head_dim"),
        indexer=indexer,
    )


def linear(keys: Keys, family: Family) -> LinearAttention:
    """The linear attention of a family."""
    return kimi_delta(keys) if family.linear == "kimi" else gated_delta(keys)


def gated_delta(keys: Keys) -> LinearAttention:
    """The gated delta rule of Qwen3-Next: Q, K, V through a convolution, an output gate, two gates a head."""
    hidden, taps = keys.count("hidden_size"), keys.count("linear_conv_kernel_dim")
    heads, key_heads = keys.count("linear_num_value_heads"), keys.count("linear_num_key_heads")
    key_dim, value_dim = keys.count("linear_key_head_dim"), keys.count("linear_value_head_dim")
    channels = 2 * key_heads * key_dim + heads * value_dim
    return LinearAttention(
        rule="gated delta rule",
        hidden=hidden,
        heads=heads,
        key_dim=key_dim,
        value_dim=value_dim,
        inputs=channels + heads * value_dim + 2 * heads,
        conv_channels=channels,
        conv_taps=taps,
        state_number_bytes=number_bytes(keys, "mamba_ssm_dtype"),
        chunk=DELTA_CHUNK,
        small_parameters=2 * heads + channels * taps + value_dim,
    )


def kimi_delta(keys: Keys) -> LinearAttention:
    """Kimi delta attention: a decay for each channel and an output gate, both through a bottleneck."""
    section = keys.section("linear_attn_config")
    if section is None:
        raise keys.missing("linear_attn_config")
    section.refuse("use_full_rank_gate", "gate_lower_bound")
    hidden = keys.count("hidden_size")
    heads, dim = section.count("num_heads"), section.count("head_dim")
    taps = section.count("short_conv_kernel_size")
    section.find("full_attn_layers", "kda_layers")
    section.close()
    width = heads * dim
    return LinearAttention(
        rule="Kimi delta attention",
        hidden=hidden,
        heads=heads,
        key_dim=dim,
        value_dim=dim,
        inputs=3 * width + heads,
        conv_channels=3 * width,
        conv_taps=taps,
        state_number_bytes=NUMBER_BYTES["float32"],
        chunk=DELTA_CHUNK,
        small_parameters=3 * width * taps + heads + width + dim,
        low_rank=((dim, width), (dim, width)),
    )


def mamba2(keys: Keys) -> LinearAttention:
    """Mamba-2: state of heads x head_dim x ssm_state_size, keys shared by groups."""
    keys.refuse("mamba_proj_bias", "use_bias")
    hidden, taps = keys.count("hidden_size"), keys.count("conv_kernel")
    heads, dim = keys.count("mamba_num_heads"), keys.count("mamba_head_dim")
    state, groups = keys.count("ssm_state_size"), keys.count("n_groups")
    inner = heads * dim
    channels = inner + 2 * groups * state
    bias = channels if keys.flag("use_conv_bias", True) else 0
    keys.find("expand", "time_step_rank")
    return LinearAttention(
        rule="Mamba-2",
        hidden=hidden,
        heads=heads,
        key_dim=state,
        value_dim=dim,
        inputs=inner + channels + heads,
        conv_channels=channels,
        conv_taps=taps,
        state_number_bytes=number_bytes(keys, "mamba_ssm_cache_dtype"),
        chunk=keys.optional_count("chunk_size") or DELTA_CHUNK,
        small_parameters=3 * heads + channels * taps + bias + inner,
    )


def number_bytes(keys: Keys, name: str) -> int:
    """Bytes of a number of a state; states are kept in float32 where nothing else is said."""
    word = keys.word(name, "float32")
    if word not in NUMBER_BYTES:
        raise keys.error(name, f"'{word}' is not understood", f"write one of {', '.join(NUMBER_BYTES)}")
    return NUMBER_BYTES[word]


def with_shared_indexers(keys: Keys, found: list[Attention]) -> list[Attention]:
    """Layers that take over the choice of the indexer of a layer before them."""
    if not keys.elements("indexer_types"):
        return found
    words = keys.words("indexer_types", ("full", "shared"), len(found))
    made: list[Attention] = []
    for word, attention in zip(words, found, strict=True):
        if word == "shared" and isinstance(attention, LatentAttention) and attention.indexer is not None:
            made.append(replace(attention, indexer=replace(attention.indexer, is_shared=True)))
        else:
            made.append(attention)
    return made
