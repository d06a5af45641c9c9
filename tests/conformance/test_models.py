"""Every model of the catalogue: parameters against what its authors print, bytes and times that can be."""

from dataclasses import replace

import pytest

from sim.catalog import load_catalog
from sim.catalog.precision import PRECISIONS, precision
from sim.timing import Shard, place, plan_memory, roofline

CATALOG = load_catalog()
MODELS = CATALOG.models
# Totals that authors print are rounded, some to whole trillions, and some count a tower for images.
ROUNDED = {"kimi-k2": 0.03, "llama-4-scout": 0.015}
DEGREES = (1, 2, 4, 8)


@pytest.mark.parametrize("name", MODELS)
def test_parameters_are_those_that_its_authors_print(name):
    model = MODELS[name]
    assert model.parameters == pytest.approx(model.published["parameters"], rel=ROUNDED.get(name, 0.01))


@pytest.mark.parametrize("name", [name for name in MODELS if "active_parameters" in MODELS[name].published])
def test_active_parameters_are_those_that_its_authors_print(name):
    # Some authors count the embedding, of which a token looks up one line; all round to two digits.
    model = MODELS[name]
    least, most = model.active_parameters, model.active_parameters + model.vocab * model.hidden
    assert 0.97 * least < model.published["active_parameters"] < 1.03 * most


@pytest.mark.parametrize("name", MODELS)
def test_dense_models_have_no_idle_parameters(name):
    model = MODELS[name]
    is_mixture = "active_parameters" in model.published
    assert (model.idle_parameters > model.parameters / 2) == is_mixture
    assert (model.idle_parameters > 0) == is_mixture


@pytest.mark.parametrize("weights", [*PRECISIONS, "native"])
@pytest.mark.parametrize("name", MODELS)
def test_weights_take_what_their_numbers_take(name, weights):
    model = MODELS[name]
    numbers = model.numbers(weights)
    assert sum(numbers.values()) == model.parameters
    assert model.weight_bytes(weights) == sum(
        precision(its).size_bytes(count) for its, count in numbers.items()
    )
    assert model.weight_bytes(weights) <= 2 * model.parameters


@pytest.mark.parametrize("name", MODELS)
def test_gpus_together_hold_all_weights_and_few_copies(name):
    model = MODELS[name]
    whole = model.weight_bytes("bf16")
    for tp in DEGREES:
        assert whole <= model.weight_bytes("bf16", tp) < 1.08 * whole


@pytest.mark.parametrize("name", MODELS)
def test_kv_is_split_down_to_one_copy_of_a_head(name):
    model = MODELS[name]
    one = model.kv_bytes_per_token("fp8")
    for tp in DEGREES:
        assert model.kv_bytes_per_token("fp8", tp) == one * max(1, tp // model.kv_heads)
    assert model.kv_bytes_per_token("bf16") <= 2 * one  # keys of indexers stay in FP8


@pytest.mark.parametrize("name", MODELS)
def test_a_sequence_holds_no_more_than_its_tokens(name):
    model = MODELS[name]
    token, before = model.kv_bytes_per_token("bf16"), 0
    for tokens in (1, 100, 128, 129, 8192, 8193, 100_000):
        held = model.kv_bytes(tokens, "bf16")
        assert before < held <= tokens * token
        before = held
    limits = [layer.attention.reach.limit for layer in model.stack]
    assert (model.kv_bytes(100_000, "bf16") < 100_000 * token) == any(limits)


@pytest.mark.parametrize("name", MODELS)
def test_an_eight_gpu_node_runs_it(name):
    model = MODELS[name]
    placement = place(CATALOG, Shard(model, "native", "fp8", 8), "dgx-b200")
    assert plan_memory(placement).fits
    timing, gpu = roofline(placement), placement.gpu
    # No faster than the nominal rates allow, and no slower than a twentieth of them.
    compute = precision(model.format("native")).compute
    fastest = gpu.flops("bf16" if compute == "half" else compute)
    prefill_s = timing.prefill_ps([(8192, 0)]) / 1e12
    bound_s = model.flops(8192) / 8 / fastest
    assert bound_s < prefill_s < 20 * bound_s
    active_bytes = model.weight_bytes("native") * model.active_parameters / model.parameters
    step_s = timing.decode_table(1).step_ps(1, 1024) / 1e12
    assert active_bytes / 8 / gpu.memory_bytes_per_s * 0.9 < step_s < 0.03


@pytest.mark.parametrize("is_long", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_the_decode_table_is_exact_on_the_expected_side_of_every_window(name, is_long):
    model = MODELS[name]
    chunks = [layer.attention.reach.chunk for layer in model.stack if layer.attention.reach.chunk]
    tokens = 100_000 if is_long else 100
    if is_long and chunks:
        tokens = 12 * chunks[0] + chunks[0] // 2  # what the table takes for the mean of a chunk
    placement = place(CATALOG, Shard(model, "native", "fp8", 8), "dgx-b200")
    timing = roofline(replace(placement, context_tokens=tokens))
    more = timing.decode_table(16).step_ps(16, 16 * tokens) - timing.step_ps([tokens] * 16)
    assert 0 <= more <= 16 * tokens + 2  # the table rounds each token of context up to a picosecond
