"""What a GPU does with a model, against the roofline and the memory plan that it is made of."""

from dataclasses import replace

import pytest

from sim.catalog import load_catalog
from sim.timing import Shard, kv_capacity_tokens, place, roofline
from sim.timing.memory import plan_memory
from sim.timing.outlook import BATCH, CONTEXT_TOKENS, PROMPT_TOKENS, Outlook, outlook

CATALOG = load_catalog()
MODEL = CATALOG.models["llama-3.1-8b"]


@pytest.mark.parametrize(("gpu", "node"), [("h200", "hgx-h200"), ("b200", "hgx-b200-spectrumx")])
def test_it_is_the_roofline_on_one_gpu_whatever_the_node(gpu, node):
    placement = place(CATALOG, Shard(MODEL, "fp8", "fp8", 1), node)
    timing = roofline(placement)
    table = timing.decode_table(BATCH)
    assert outlook(CATALOG, gpu, MODEL, "fp8") == Outlook(
        timing.prefill_ps([(PROMPT_TOKENS, 0)]),
        table.step_ps(1, CONTEXT_TOKENS),
        table.step_ps(BATCH, BATCH * CONTEXT_TOKENS),
        kv_capacity_tokens(placement),
        None,
    )


def test_without_room_for_the_weights_there_is_only_what_is_missing():
    found = outlook(CATALOG, "t4", MODEL, "fp16")
    plan = plan_memory(place(CATALOG, Shard(MODEL, "fp16", "fp16", 1), "g4dn"))
    assert found == Outlook(None, None, None, None, -plan.kv_bytes)
    assert found.missing_bytes > 0


def test_without_room_for_a_batch_there_is_one_sequence():
    found = outlook(CATALOG, "rtx-3090", MODEL, "bf16")
    assert CONTEXT_TOKENS <= found.kv_tokens < BATCH * CONTEXT_TOKENS
    assert found.step_ps is not None
    assert found.batch_step_ps is None


def test_weights_of_four_bits_leave_kv_in_eight():
    whole = outlook(CATALOG, "b200", MODEL, "fp4")
    plan = plan_memory(place(CATALOG, Shard(MODEL, "fp4", "fp8", 1), "dgx-b200"))
    assert whole.kv_tokens == plan.kv_tokens
    assert whole == replace(whole, missing_bytes=None)
