"""What fits, to the byte, and what is said where it does not."""

from dataclasses import replace

import pytest
from timing_parts import GPU, PLACEMENT, catalogue_shard

from sim.base.errors import UnsupportedError
from sim.catalog import load_catalog
from sim.timing import kv_capacity_tokens, place, plan_memory

CATALOG = load_catalog()


def test_the_unit_placement_to_the_byte():
    # 2 x (16 x 8 + 8 x 8 + 3 x 8 x 16) matrices, 2 x 2 x 32 x 8 embedding and head, 2 x 3 x 8 norms
    plan = plan_memory(PLACEMENT)
    assert plan.weight_bytes == 2 * 576 + 1024 + 48
    assert plan.kv_bytes == 500_000 - 2224 - 1000
    assert plan.kv_tokens == 31_048  # 496,776 / 16 = 31,048.5, in whole pages of 4
    assert kv_capacity_tokens(PLACEMENT) == 31_048


def test_70b_fp8_on_eight_b200():
    placement = place(CATALOG, catalogue_shard("llama-3.1-70b", "fp8", 8), "dgx-b200")
    budget = int(183_359 * 2**20 * 0.9)
    weights = -(-(68_451_041_280 + 2 * (2_101_346_304 + 8 * 161 * 8192)) // 8)
    assert kv_capacity_tokens(placement) == (budget - weights - 4 * 2**30) // 20_480 // 16 * 16


def test_the_measured_engine_has_its_11000_pages():
    placement = place(CATALOG, catalogue_shard("llama-3.1-8b", "bf16", 1), "hgx-h200", "reference-h200")
    assert kv_capacity_tokens(placement) / 64 == pytest.approx(11_000, rel=0.01)


def test_weights_that_do_not_fit():
    placement = place(CATALOG, catalogue_shard("llama-3.1-70b", "bf16", 1), "dgx-h100")
    plan = plan_memory(placement)
    assert (plan.fits, plan.kv_tokens) == (False, 0)
    with pytest.raises(UnsupportedError) as caught:
        kv_capacity_tokens(placement)
    assert str(caught.value) == (
        "the weights do not fit. Llama 3.1 70B BF16 at tp 1 on NVIDIA H100 SXM5 80 GB: "
        "77 GB of 85.5 GB to use, weights 141 GB, activations 4.29 GB: 68.4 GB missing\n"
        "  nearest: a larger tp, or weights of fewer bits"
    )


def test_room_for_less_than_a_page_is_no_room():
    tight = replace(PLACEMENT, gpu=replace(GPU, usable_memory_bytes=2 * (2224 + 1000 + 63)))
    assert not plan_memory(tight).fits
    roomy = replace(PLACEMENT, gpu=replace(GPU, usable_memory_bytes=2 * (2224 + 1000 + 64)))
    assert plan_memory(roomy).kv_tokens == 4
