"""The MLP of each layer, read from a config.json: dense, or experts, and which layers have which."""

from __future__ import annotations

from sim.catalog.huggingface.families import Family
from sim.catalog.huggingface.keys import Keys
from sim.catalog.mlp import DenseMlp, Mlp, MoeMlp

EXPERTS = ("n_routed_experts", "num_experts", "num_local_experts")
ACTIVE = ("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "top_k_experts")
SHARED_WIDTH = (
    "shared_expert_intermediate_size",
    "moe_shared_expert_intermediate_size",
    "share_expert_dim",
    "shared_intermediate_size",
)


def mlps(keys: Keys, family: Family, layers: int) -> list[Mlp]:
    """The MLP of each layer, in order."""
    keys.refuse("hidden_size_per_layer_input", "use_double_wide_mlp", "routed_expert_hidden_size")
    experts = keys.optional_count(*EXPERTS)
    keys.find(*ACTIVE, "enable_moe_block")
    if not experts:
        keys.find("moe_intermediate_size", "expert_intermediate_size", "mlp_only_layers")
        return [dense(keys, family)] * layers
    has_experts = expert_layers(keys, layers)
    routed = moe(keys, family, experts)
    plain = None if all(has_experts) else dense(keys, family)
    keys.find("intermediate_size", "intermediate_size_mlp", "dense_intermediate_size")
    return [routed if has or plain is None else plain for has in has_experts]


def dense(keys: Keys, family: Family) -> DenseMlp:
    """The MLP of all layers, or of those without experts."""
    hidden = keys.count("hidden_size")
    inner = keys.count(*_dense_width(keys))
    small = 0
    if keys.flag("mlp_bias"):
        small = (2 if family.is_gated else 1) * inner + hidden
    return DenseMlp(hidden, inner, family.is_gated, small)


def _dense_width(keys: Keys) -> tuple[str, ...]:
    """Where the width of a dense MLP is: models with experts may keep it apart."""
    if keys.find(*EXPERTS) is None:
        return ("intermediate_size",)
    return ("intermediate_size_mlp", "dense_intermediate_size", "intermediate_size")


def moe(keys: Keys, family: Family, experts: int) -> MoeMlp:
    """The experts of a layer."""
    keys.refuse("mlp_bias")
    hidden, active = keys.count("hidden_size"), keys.count(*ACTIVE)
    if active > experts:
        name = keys.find(*ACTIVE) or ACTIVE[0]
        raise keys.error(name, f"{active} of {experts} experts cannot work on a token")
    width_keys = ("moe_intermediate_size", "expert_intermediate_size")
    inner = keys.count(*width_keys, *((family.expert_width,) if keys.find(*width_keys) is None else ()))
    shared = _shared_width(keys, family, inner)
    corrections = {"plain": 0, "corrected": experts, "biased": experts, "scaled": hidden + experts}
    keys.find("use_routing_bias", "use_moe_router_bias")
    return MoeMlp(
        hidden=hidden,
        experts=experts,
        active=active,
        inner=inner,
        shared_inner=shared,
        is_gated=family.is_gated,
        has_shared_gate=family.has_shared_gate and shared > 0,
        latent=keys.optional_count("moe_latent_size") or None,
        has_biases=family.has_expert_biases,
        other_small=corrections[family.router],
    )


def _shared_width(keys: Keys, family: Family, inner: int) -> int:
    """The joint width of what works on all tokens beside the experts."""
    if family.shared_width is not None:
        return keys.count(family.shared_width)
    number = keys.optional_count("n_shared_experts", "num_shared_experts")
    name = keys.find(*SHARED_WIDTH)
    width = keys.optional_count(*SHARED_WIDTH)
    if name is not None and width is not None:
        return width
    return (number or 0) * inner


def expert_layers(keys: Keys, layers: int) -> list[bool]:
    """Which layers have experts."""
    if keys.find("mlp_layer_types") is not None:
        keys.find("first_k_dense_replace", "moe_layer_freq")
        words = keys.words("mlp_layer_types", ("dense", "sparse"), layers)
        return [word == "sparse" for word in words]
    if keys.is_list("moe_layer_freq"):
        keys.find("first_k_dense_replace")
        return keys.switches("moe_layer_freq", layers)
    if keys.find("interleave_moe_layer_step") is not None:
        step = keys.count("interleave_moe_layer_step")
        listed = keys.indices("moe_layers") or range(step - 1, layers, step)
        return [i in listed for i in range(layers)]
    first = keys.optional_count("first_k_dense_replace") or 0
    every = keys.optional_count("moe_layer_freq") or 1
    step = keys.optional_count("decoder_sparse_step") or 1
    without = keys.indices("mlp_only_layers")
    return [i >= first and i % every == 0 and (i + 1) % step == 0 and i not in without for i in range(layers)]
