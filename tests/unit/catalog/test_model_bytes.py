"""Bytes and parameters that follow from a model's shapes, against counts known from elsewhere."""

import pytest

from sim.base.errors import UnknownNameError
from sim.catalog import load_catalog

LLAMA_70B = load_catalog().models["llama-3.1-70b"]
LLAMA_8B = load_catalog().models["llama-3.1-8b"]


def test_parameters_are_those_of_the_model_cards():
    # The counts that Hugging Face prints for the checkpoints.
    assert LLAMA_8B.parameters == 8_030_261_248
    assert LLAMA_70B.parameters == 70_553_706_496


def test_kv_bytes_per_token():
    # 2 (K and V) x 80 layers x 8 KV heads x 128 x bytes
    assert LLAMA_70B.kv_bytes_per_token("bf16") == 327_680
    assert LLAMA_70B.kv_bytes_per_token("fp8") == 163_840
    assert LLAMA_8B.kv_bytes_per_token("bf16") == 131_072
    assert LLAMA_8B.kv_bytes_per_token("fp8") == 65_536


def test_kv_heads_are_split_and_then_copied():
    token = LLAMA_70B.kv_bytes_per_token("fp8")
    on_each = [LLAMA_70B.kv_bytes_per_token_per_gpu("fp8", tp) for tp in (1, 2, 4, 8, 16)]
    assert on_each == [token, token // 2, token // 4, token // 8, token // 8]
    assert LLAMA_70B.kv_bytes_per_token("fp8", tp=8) == 163_840
    assert LLAMA_70B.kv_bytes_per_token("fp8", tp=16) == 2 * 163_840
    assert LLAMA_70B.kv_bytes_per_token_per_gpu("fp8", 8) == 20_480
    assert LLAMA_70B.kv_bytes_per_token_per_gpu("fp8", 16) == 20_480


def test_weight_bytes():
    # 80 x (8192 x 10240 + 8192 x 8192 + 3 x 8192 x 28672) matrices, 2 x 128256 x 8192 embedding and head
    matrices, embeddings, norms = 68_451_041_280, 2_101_346_304, 161 * 8192
    assert LLAMA_70B.weight_bytes("bf16") == 2 * (matrices + embeddings + norms)
    assert LLAMA_70B.weight_bytes("fp8") == matrices + 2 * (embeddings + norms)


def test_weight_bytes_of_a_replica_count_copies():
    copied_kv = 80 * 2 * 8192 * 128 * 8  # K and V projections of 8 more heads, one byte each
    copied_norms = 8 * 161 * 8192 * 2
    assert (
        LLAMA_70B.weight_bytes("fp8", tp=16) - LLAMA_70B.weight_bytes("fp8", tp=8) == copied_kv + copied_norms
    )


def test_an_unknown_precision():
    with pytest.raises(UnknownNameError) as caught:
        LLAMA_8B.kv_bytes_per_token("fp88")
    assert str(caught.value) == "unknown precision 'fp88'\n  hint: did you mean 'fp8'?"


def test_summaries_are_one_line():
    assert LLAMA_8B.summary == (
        "Llama 3.1 8B, 8.0 B parameters, 32 layers, 32/8 heads of 128, KV 128 KiB per token in BF16"
    )
