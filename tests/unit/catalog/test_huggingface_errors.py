"""What cannot be understood in a config.json is refused at its key, never guessed."""

import json
from pathlib import Path

import pytest

from sim.base.errors import ConfigErrors
from sim.catalog.huggingface.file import model_of_file

FOLDER = Path(__file__).parents[2] / "data" / "hf"


def refusal(tmp_path, name, changes, without=()):
    """What is said of a file with some keys changed and some taken out."""
    tree = json.loads((FOLDER / f"{name}.json").read_text()) | changes
    path = tmp_path / "config.json"
    path.write_text(json.dumps({key: value for key, value in tree.items() if key not in without}, indent=1))
    with pytest.raises(ConfigErrors) as caught:
        model_of_file(path, "config.json")
    return str(caught.value)


@pytest.mark.parametrize(
    "key", ["model_type", "num_hidden_layers", "hidden_size", "vocab_size", "intermediate_size"]
)
def test_a_missing_key_is_named(tmp_path, key):
    assert refusal(tmp_path, "head-dim-absent", {}, [key]).startswith(f"config.json:1:1: {key}: missing")


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("head-dim-absent", {"model_type": "lama"}, "2:2: model_type: 'lama' is not known"),
        (
            "head-dim-absent",
            {"num_attention_heads": 7},
            "head_dim: missing, and hidden_size 64 is no multiple",
        ),
        ("head-dim-absent", {"num_key_value_heads": 3}, "6:2: num_key_value_heads: 8 heads cannot share 3"),
        ("head-dim-absent", {"num_key_value_heads": 0}, "6:2: num_key_value_heads: must be above 0"),
        ("head-dim-absent", {"hidden_size": "64"}, "4:2: hidden_size: '64' is not a whole number"),
        ("head-dim-absent", {"hidden_size": 64.5}, "4:2: hidden_size: 64.5 is not a whole number"),
        (
            "head-dim-absent",
            {"num_hidden_layers": True},
            "3:2: num_hidden_layers: true is not a whole number",
        ),
        ("head-dim-absent", {"tie_word_embeddings": "no"}, "tie_word_embeddings: 'no' is neither true nor"),
        ("head-dim-absent", {"kv_compression": 4}, "kv_compression: not understood for model_type 'llama'"),
        ("head-dim-absent", {"sliding_window": 64}, "sliding_window: it is not said which layers have it"),
        ("windows-listed", {"layer_types": ["full_attention"]}, "layer_types: has 1 items for 4 layers"),
        (
            "windows-listed",
            {"layer_types": ["full_attention"] * 3 + ["hyper_attention"]},
            "layer_types.3: 'hyper_attention' is not understood",
        ),
        (
            "head-dim-absent",
            {"layer_types": ["linear_attention", "full_attention"]},
            "layer_types.0: 'linear_attention' is not understood",
        ),
        ("mla", {"num_experts_per_tok": 9}, "num_experts_per_tok: 9 of 8 experts cannot work on a token"),
        ("mla-with-indexer", {"index_topk": None}, "index_n_heads: not understood"),
        ("mamba-hybrid", {"hybrid_override_pattern": "M-X*"}, "hybrid_override_pattern: 'X' at place 3"),
        ("mamba-hybrid", {"hybrid_override_pattern": "M-*"}, "hybrid_override_pattern: has 3 letters for 4"),
        ("mamba-hybrid", {"hybrid_override_pattern": "MEM*"}, "hybrid_override_pattern: 'E' at place 2"),
        (
            "mamba-hybrid",
            {"mamba_ssm_cache_dtype": "int8"},
            "mamba_ssm_cache_dtype: 'int8' is not understood",
        ),
        ("global-layers", {"num_kv_shared_layers": 2}, "num_kv_shared_layers: is not modelled"),
        ("wide-keys", {"hybrid_layer_pattern": [0, 1, 2, 0]}, "hybrid_layer_pattern.2: 2 is neither 0 nor 1"),
        ("head-dim-absent", {"quantization_config": {"quant_method": "fp9"}}, "quant_method: 'fp9' is not"),
        ("head-dim-absent", {"quantization_config": {}}, "quantization_config.quant_method: missing"),
        (
            "head-dim-absent",
            {"quantization_config": {"quant_method": "gptq", "bits": 3}},
            "quantization_config.bits: 3 bits of type int are not modelled",
        ),
        (
            "head-dim-absent",
            {"quantization_config": {"quant_method": "fp8", "modules_to_not_convert": ["k_proj"]}},
            "'k_proj' keeps layers.0.self_attn.k_proj alone",
        ),
        ("nested", {"text_config": {"model_type": "llama"}}, "text_config.num_hidden_layers: missing"),
    ],
)
def test_a_key_that_cannot_be_understood_is_named(tmp_path, name, changes, said):
    text = refusal(tmp_path, name, changes)
    assert text.startswith("config.json:")
    assert said in text.split("\n")[0]


def test_the_place_is_shown_with_a_remedy(tmp_path):
    assert refusal(tmp_path, "head-dim-absent", {"num_key_value_heads": "two"}) == (
        "config.json:6:2: num_key_value_heads: 'two' is not a whole number of at least 0\n"
        '   6 |  "num_key_value_heads": "two",\n'
        "        ^"
    )


@pytest.mark.parametrize("text", ["", "[1, 2]", "{", '{"a": 1,, }', "hello"])
def test_what_is_no_json_object(tmp_path, text):
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(ConfigErrors) as caught:
        model_of_file(path, "config.json")
    assert str(caught.value).startswith("config.json:1:")


def test_a_key_written_twice(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "llama",\n "hidden_size": 64,\n "hidden_size": 128}')
    with pytest.raises(ConfigErrors, match=r"config.json:3:2: hidden_size: the key is given twice"):
        model_of_file(path, "config.json")
