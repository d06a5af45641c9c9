"""Every entry of the catalogue: complete, sourced, plausible in itself and against its neighbours."""

import re

import pytest

from sim.base.errors import UnsupportedError
from sim.catalog import load_catalog
from sim.catalog.entry import VERIFIED
from sim.timing import Shard, kv_capacity_tokens, place, plan_memory, roofline
from sim.timing.operators import all_reduce

CATALOG = load_catalog()
SHELVES = ("gpus", "nodes", "links", "models", "engines", "efficiencies")
ENTRIES = [(shelf, name) for shelf in SHELVES for name in getattr(CATALOG, shelf)]
LEAVES = [(shelf, name, path) for shelf, name in ENTRIES for path in getattr(CATALOG, shelf)[name].provenance]
TIMED = ("llama-3.1-8b", "llama-3.1-70b")  # dense, so that their FLOP and bytes are known in closed form
DEGREES = (1, 2, 4, 8)


def half(gpu):
    """The 16-bit format of a GPU."""
    return "bf16" if "bf16" in CATALOG.gpus[gpu].dense_flops else "fp16"


def shapes(node, models):
    """Models in the formats that the GPUs of a node compute in, on as many of them as it has."""
    chassis = CATALOG.nodes[node]
    formats = [name for name in (half(chassis.gpu), "fp8") if name in CATALOG.gpus[chassis.gpu].dense_flops]
    for model in models:
        for precision in formats:
            for tp in (degree for degree in DEGREES if degree <= chassis.gpus):
                yield Shard(CATALOG.models[model], precision, precision, tp)


def leaf_of(shelf, name, path):
    return getattr(CATALOG, shelf)[name].provenance[path]


@pytest.mark.parametrize(("shelf", "name"), ENTRIES)
def test_an_entry_is_complete(shelf, name):
    entry = getattr(CATALOG, shelf)[name]
    assert re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name)
    assert entry.title in entry.summary
    assert "\n" not in entry.summary
    assert entry.provenance


@pytest.mark.parametrize(("shelf", "name", "path"), LEAVES)
def test_a_value_is_sourced(shelf, name, path):
    leaf = leaf_of(shelf, name, path)
    assert leaf.verified in VERIFIED
    assert leaf.source in CATALOG.sources
    # A value from memory or by assumption says so in both places, and no other does.
    assert (leaf.source == "memory") == (leaf.verified == "memory")
    assert (leaf.source == "assumption") == (leaf.verified == "assumption")
    assert (CATALOG.sources[leaf.source].kind == "own measurement") == (leaf.verified == "measured")


def test_every_source_is_used():
    assert {leaf_of(*where).source for where in LEAVES} == set(CATALOG.sources)


@pytest.mark.parametrize("name", CATALOG.sources)
def test_a_source_is_public(name):
    source = CATALOG.sources[name]
    assert source.url == "" or source.url.startswith("https://")
    assert source.date
    if source.kind.startswith(("primary", "vendor")):
        assert source.url


@pytest.mark.parametrize("name", CATALOG.engines)
def test_an_engine_is_plausible(name):
    engine = CATALOG.engines[name]
    assert 0.5 < engine.memory_fraction < 1
    assert all(engine.attention_kernel in part.attention_compute for part in CATALOG.efficiencies.values())


@pytest.mark.parametrize("node", CATALOG.nodes)
def test_what_cannot_be_placed_is_refused_with_the_nearest(node):
    chassis = CATALOG.nodes[node]
    gpu, model = CATALOG.gpus[chassis.gpu], CATALOG.models["llama-3.1-70b"]
    for precision in ("bf16", "fp8"):
        if precision not in gpu.dense_flops:
            with pytest.raises(UnsupportedError) as caught:
                roofline(place(CATALOG, Shard(model, precision, precision, 1), node))
            assert gpu.title in caught.value.problem
            assert half(chassis.gpu).upper() in caught.value.nearest
    with pytest.raises(UnsupportedError) as caught:
        place(CATALOG, Shard(model, half(chassis.gpu), half(chassis.gpu), 64), node)
    assert chassis.title in caught.value.problem
    most = chassis.gpus
    assert caught.value.nearest == (f"tp {most} or less" if most > 1 else "tp 1")


@pytest.mark.parametrize("node", CATALOG.nodes)
def test_every_model_fits_or_says_by_how_much_not(node):
    for shard in shapes(node, CATALOG.models):
        placement = place(CATALOG, shard, node)
        plan = plan_memory(placement)
        if plan.fits:
            assert kv_capacity_tokens(placement) == plan.kv_tokens
            used = plan.weight_bytes + plan.activation_bytes + plan.kv_tokens * plan.kv_bytes_per_token
            assert used <= plan.budget_bytes < plan.usable_bytes
        else:
            with pytest.raises(UnsupportedError, match=r"the weights do not fit.* missing"):
                kv_capacity_tokens(placement)


@pytest.mark.parametrize("node", CATALOG.nodes)
def test_a_placement_has_plausible_times(node):
    for shard in shapes(node, TIMED):
        placement = place(CATALOG, shard, node)
        timing, parameters = roofline(placement), shard.model.parameters
        # No faster than the nominal rates allow, no slower than a tenth of them beside what crosses links.
        prefill_s = timing.prefill_ps([(8192, 0)]) / 1e12
        bound_s = 2 * parameters * 0.98 * 8192 / shard.tp / placement.gpu.flops(shard.weights)
        links_s = 2 * shard.model.layers * all_reduced(placement, 8192)
        assert (1 if "70b" in shard.model.name else 0.9) * bound_s < prefill_s < 10 * bound_s + links_s
        step_s = timing.decode_table(1).step_ps(1, 1024) / 1e12
        read_s = shard.weight_bytes_per_gpu * 0.85 / placement.gpu.memory_bytes_per_s
        assert read_s < step_s < 20 * read_s + 2 * shard.model.layers * all_reduced(placement, 1)


def all_reduced(placement, tokens):
    """Seconds of an all-reduce of the vectors of some tokens."""
    return all_reduce(placement)(tokens) / 1e12
