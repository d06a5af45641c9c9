"""Config files of every odd shape: what they hold, against the classes of transformers and by hand.

The files are small, made for these tests; the keys are those of public models.
"""

import json
from pathlib import Path

import pytest

from sim.catalog import load_catalog
from sim.catalog.huggingface.file import model_of_file

FOLDER = Path(__file__).parents[2] / "data" / "hf"
FILES = sorted(path.stem for path in FOLDER.glob("*.json"))
# Numbers of parameters of transformers 5.18's own classes for these files, and for public models, counted
# without memory (torch's meta device); with the corrections of routers, which the classes keep apart.
COUNTED = {
    "biases": 83_712,
    "chunks": 784_960,
    "fp8-but-router": 103_552,
    "global-layers": 449_104,
    "head-dim-absent": 82_752,
    "head-dim-given": 103_232,
    "int4-experts": 217_264 + 16,
    "kimi-linear": 287_068 + 24,
    "kv-heads-absent": 95_040,
    "kv-heads-null": 95_040,
    "linear-attention": 323_528,
    "mamba-hybrid": 77_040,
    "mla": 217_264 + 16,
    "mla-with-indexer": 230_416 + 16,
    "mla-with-shared-indexer": 226_032 + 16,
    "mla-without-query-rank": 212_512,
    "nested": 82_752,
    "tied": 76_352,
    "windows-everywhere": 82_752,
    "windows-in-late-layers": 82_944,
    "windows-listed": 495_728,
}
COUNTED_PUBLIC = {
    "llama-3.1-405b": 405_853_388_800,
    "llama-4-scout": 107_769_861_120,
    "llama-4-maverick": 400_711_848_960,
    "qwen3-8b": 8_190_735_360,
    "qwen3-32b": 32_762_123_264,
    "qwen3-30b-a3b": 30_532_122_624,
    "qwen3-235b-a22b": 235_093_634_560,
    "mixtral-8x7b": 46_702_792_704,
    "gpt-oss-20b": 20_914_757_184,
    "gpt-oss-120b": 116_829_156_672,
    "deepseek-v3": 671_026_404_352 + 14_848,
    "deepseek-v3.2": 671_877_929_216 + 14_848,
}


def model(name):
    return model_of_file(FOLDER / f"{name}.json")


def attentions(name):
    return [layer.attention for layer in model(name).stack]


@pytest.mark.parametrize("name", COUNTED)
def test_parameters_are_those_of_the_model_class(name):
    assert model(name).parameters == COUNTED[name]


@pytest.mark.parametrize("name", COUNTED_PUBLIC)
def test_parameters_of_public_models_are_those_of_the_model_class(name):
    assert load_catalog().models[name].parameters == COUNTED_PUBLIC[name]


@pytest.mark.parametrize("name", FILES)
def test_a_file_becomes_a_model(name):
    made = model(name)
    assert made.layers == len(made.stack) == sum(count for _, count in made.groups)
    assert 0 < made.active_parameters <= made.parameters
    assert made.kv_bytes_per_token("bf16") > 0
    assert made.weight_bytes("native") <= made.weight_bytes("bf16")
    assert made.title in made.summary


def test_a_head_dim_that_is_absent_is_the_share_of_a_head():
    assert attentions("head-dim-absent")[0].head_dim == 8  # 64 / 8
    assert attentions("head-dim-given")[0].head_dim == 16


@pytest.mark.parametrize("name", ["kv-heads-absent", "kv-heads-null"])
def test_kv_heads_that_are_absent_are_as_many_as_heads(name):
    assert attentions(name)[0].kv_heads == 8
    assert model(name).kv_bytes_per_token("bf16") == 2 * 2 * 8 * 8 * 2


def test_a_nested_config_is_that_of_its_language_model():
    assert model("nested").parameters == model("head-dim-absent").parameters
    assert model("nested").left_out == ("vision_config",)
    assert model("nested-without-type").family == "gemma3"


def test_keys_that_say_nothing_of_shapes_are_passed_over():
    assert model("clutter").stack == model("head-dim-absent").stack


def test_keys_and_values_of_different_sizes_in_layers_of_different_kv_heads():
    # Two full layers of 2 KV heads and two of 4 with a window of 32, all with keys of 24 and values of 16.
    made = model("wide-keys")
    assert made.kv_bytes_per_token("fp8") == 2 * 2 * 40 + 2 * 4 * 40
    assert made.kv_bytes(1000, "fp8") == 1000 * 160 + 32 * 320
    assert made.kv_bytes_per_token_per_gpu("fp8", 4) == 2 * 40 + 2 * 40
    assert made.kv_heads == 2
    sinks = [layer.attention.small_parameters for layer in made.stack]
    assert sinks == [0, 8, 8, 0]


def test_global_layers_may_have_other_heads_and_keys_as_values():
    made = model("global-layers")
    window, full = made.stack[0].attention, made.stack[5].attention
    assert (window.kv_heads, window.head_dim, window.reach.window) == (4, 16, 32)
    assert (full.kv_heads, full.head_dim, full.reach.limit) == (2, 32, None)
    assert full.matrices(1)[0].n == 8 * 32 + 2 * 32  # no value projection, but values are cached
    assert full.kv_numbers(1) == 2 * 64
    assert made.tied_embeddings


@pytest.mark.parametrize(
    ("name", "windows"),
    [
        ("windows-listed", [128, None, 128, None]),
        ("windows-everywhere", [256, 256]),
        ("windows-switched-off", [None, None]),
        ("windows-in-late-layers", [None, 256]),
        ("nested-without-type", [16, 16, None, 16, 16, None]),
    ],
)
def test_which_layers_have_a_window(name, windows):
    assert [attention.reach.window for attention in attentions(name)] == windows


def test_llama_4_sees_everything_in_each_fourth_layer_and_has_experts_in_each_second():
    made = model("chunks")
    assert [layer.attention.reach.chunk for layer in made.stack] == [64, 64, 64, None] * 2
    assert [layer.mlp.label for layer in made.stack[:2]] == ["MLP 256", "1 of 4 experts of 128 + shared 128"]
    assert made.kv_bytes(1000, "fp8") == (6 * 64 + 2 * 1000) * 2 * 2 * 8


def test_linear_attention_keeps_a_state_and_no_kv():
    made = model("linear-attention")
    assert [layer.attention.kv_heads for layer in made.stack] == [0, 0, 0, 2]
    assert made.kv_bytes_per_token("bf16") == 2 * 2 * 32 * 2
    # 8 states of 8 x 8 in float32, and 3 inputs of 4 x 8 queries, as many keys and 8 x 8 values in bf16
    state = 8 * 8 * 8 * 4 + 3 * (2 * 4 * 8 + 8 * 8) * 2
    assert made.state_bytes_per_gpu(1) == 3 * state
    assert made.state_bytes_per_gpu(4) == 3 * state // 4
    assert made.kv_bytes(10, "bf16") == 3 * state + 10 * 256


def test_kimi_linear_mixes_states_and_latents():
    made = model("kimi-linear")
    assert made.kv_bytes_per_token("bf16") == (32 + 8) * 2
    assert made.state_bytes_per_gpu(1) == 3 * (4 * 16 * 16 * 4 + 3 * 3 * 64 * 2)


def test_a_hybrid_has_layers_of_one_block_each():
    made = model("mamba-hybrid")
    assert [(layer.attention is not None, layer.mlp is not None) for layer in made.stack] == [
        (True, False),
        (False, True),
        (True, False),
        (True, False),
    ]
    # 8 heads of 8 with a state of 16 each; the convolution runs over 64 + 2 x 2 x 16 channels
    assert made.state_bytes_per_gpu(1) == 2 * (8 * 8 * 16 * 4 + 128 * 3 * 2)


def test_mla_keeps_one_latent_on_every_gpu():
    made = model("mla")
    assert made.kv_bytes_per_token("bf16") == 3 * (32 + 8) * 2
    assert made.kv_bytes_per_token("bf16", tp=4) == 4 * 3 * 40 * 2
    assert made.kv_heads == 1


def test_an_indexer_keeps_a_key_in_fp8_beside():
    assert model("mla-with-indexer").kv_bytes_per_token("bf16") == 3 * (80 + 16 + 4)
    assert model("mla-with-shared-indexer").kv_bytes_per_token("bf16") == 3 * 80 + 2 * 20


def test_searched_blocks_differ_in_heads_and_widths_or_have_no_attention():
    made = model("searched-blocks")
    first, second = made.stack
    assert (first.attention.kv_heads, first.mlp.inner) == (2, 256)  # 2 x 5.25 x 64 / 3 = 224, in steps of 256
    assert second.attention is None
    assert made.kv_bytes_per_token("bf16") == 2 * 2 * 8 * 2


def test_quantised_experts_beside_everything_else_in_bf16():
    made = model("windows-listed")
    experts = sum(matrix.parameters for layer in made.stack for matrix in layer.mlp.expert_matrices(1))
    assert made.native == "mxfp4"
    assert made.numbers("native") == {"mxfp4": experts, "bf16": made.parameters - experts}
    assert made.weight_bytes("native") == -(-experts * 17 // 32) + 2 * (made.parameters - experts)


def test_patterns_keep_parts_of_layers():
    int4 = model("int4-experts")
    assert int4.native == "int4"
    assert set(int4.stack[1].kept) == {"attention", "attention_output", "shared_experts"}
    assert "mlp" in int4.stack[0].kept
    first, second = model("nvfp4-but-first-layer").stack
    assert set(first.kept) == {"attention", "attention_output", "mlp"}
    assert second.kept == ()
    assert all(layer.kept == () for layer in model("fp8-but-router").stack)  # routers are never quantised


def written(tmp_path, name, **changes):
    """A copy of a file with some keys changed; None takes a key out."""
    tree = json.loads((FOLDER / f"{name}.json").read_text())
    tree = {key: value for key, value in (tree | changes).items() if value is not None}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(tree, indent=1))
    return path


def test_tabs_and_one_long_line_are_json_as_well(tmp_path):
    tree = json.loads((FOLDER / "mla.json").read_text())
    for text in (json.dumps(tree, indent="\t"), json.dumps(tree, separators=(",", ":"))):
        path = tmp_path / "config.json"
        path.write_text(text)
        assert model_of_file(path).stack == model("mla").stack


def test_unknown_keys_without_a_ring_of_shapes_do_not_matter(tmp_path):
    path = written(tmp_path, "mla", some_flag=True, my_comment="hello", mlp_only_layers=[])
    assert model_of_file(path).stack == model("mla").stack
