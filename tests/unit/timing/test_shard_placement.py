"""What cannot be split or timed is refused, with what would do."""

import pytest
from timing_parts import catalogue_shard

from sim.base.errors import UnknownNameError, UnsupportedError
from sim.catalog import load_catalog
from sim.timing import place

CATALOG = load_catalog()


def refusal(tp, node="dgx-b200"):
    with pytest.raises(UnsupportedError) as caught:
        place(CATALOG, catalogue_shard("llama-3.1-70b", "fp8", tp), node)
    return str(caught.value)


def test_a_placement_joins_its_parts():
    placement = place(CATALOG, catalogue_shard("llama-3.1-70b", "fp8", 8), "dgx-b200")
    assert (placement.gpu.name, placement.collective.link.name) == ("b200", "nvlink-5")
    assert (placement.engine.name, placement.efficiency.name) == ("reference", "blackwell")


def test_more_gpus_than_the_node_has():
    assert refusal(16) == "tp 16 on NVIDIA DGX B200 with its 8 GPUs\n  nearest: tp 8 or less"


def test_heads_that_cannot_be_split():
    assert refusal(3) == "tp 3 does not divide the 64 heads of Llama 3.1 70B\n  nearest: tp 2"


def test_unknown_names():
    with pytest.raises(UnknownNameError, match="unknown node 'dgx-b20'"):
        place(CATALOG, catalogue_shard("llama-3.1-8b", "bf16", 1), "dgx-b20")
    with pytest.raises(UnknownNameError, match="did you mean 'reference'"):
        place(CATALOG, catalogue_shard("llama-3.1-8b", "bf16", 1), "dgx-b200", "referense")
