"""Operators on a roofline chart: by hand in the unit model, and the times that whole steps are made of."""

import pytest
from timing_parts import PLACEMENT, catalogue_shard

from sim.catalog import load_catalog
from sim.timing import place, roofline
from sim.timing.works import works_of_prompt, works_of_step


def test_the_operators_of_a_step_by_hand():
    """One sequence of 10 tokens; the unit model, GPU and engine are those of test_roofline."""
    works = {work.name: work for work in works_of_step(PLACEMENT, 1, 10)}
    assert [(name, work.flops, work.moved_bytes) for name, work in works.items()] == [
        ("attention 16 x 8", 256, 256 + 48),
        ("attention output 8 x 8", 128, 128 + 32),
        ("mlp 32 x 8", 512, 512 + 80),
        ("mlp 8 x 16", 256, 256 + 48),
        ("attention itself", 10 * 32, 10 * 16),
        ("LM head 32 x 8", 512, 512 + 80),
    ]
    assert all(
        work.time_ps == max(work.flops, work.moved_bytes) for name, work in works.items() if "x" in name
    )
    assert works["attention itself"].time_ps == 10 * 16  # reading decides here
    assert works["mlp 32 x 8"].intensity == pytest.approx(512 / 592)
    assert works["mlp 32 x 8"].flops_per_s == pytest.approx(512 / 592 * 10**12)


def test_attention_of_a_prompt_counts_what_the_mask_leaves():
    works = {work.name: work for work in works_of_prompt(PLACEMENT, 10)}
    assert works["attention itself"].flops == 55 * 32
    assert works["LM head 32 x 8"].flops == 512  # of one token


@pytest.mark.parametrize(
    ("model", "weights", "kinds"),
    [
        ("deepseek-r1", "fp8", {"attention", "mlp", "experts", "router", "shared experts", "LM head"}),
        ("gpt-oss-120b", "fp8", {"attention", "experts", "router", "LM head"}),
    ],
)
def test_models_of_other_kinds_have_all_their_operators(model, weights, kinds):
    placement = place(load_catalog(), catalogue_shard(model, weights, 8), "dgx-b200")
    for works in (works_of_prompt(placement, 2048), works_of_step(placement, 32, 2048)):
        names = [work.name for work in works]
        assert len(set(names)) == len(names)
        assert all(any(name.startswith(kind) for name in names) for kind in kinds)
        assert all(work.flops > 0 and work.moved_bytes > 0 and work.time_ps > 0 for work in works)


def test_operators_are_no_faster_than_the_roofs_and_make_up_most_of_a_step():
    placement = place(load_catalog(), catalogue_shard("llama-3.1-8b", "bf16", 1), "hgx-h200")
    works = works_of_step(placement, 32, 4096)
    for work in works:
        assert work.flops_per_s <= placement.gpu.flops("bf16")
        assert work.moved_bytes / work.time_ps * 10**12 <= placement.gpu.memory_bytes_per_s
    layers = sum(work.time_ps for work in works if not work.name.startswith("LM head"))
    step = roofline(placement).decode_table(32).step_ps(32, 32 * 4096)
    assert 0.8 < (32 * layers + works[-1].time_ps) / step < 1
