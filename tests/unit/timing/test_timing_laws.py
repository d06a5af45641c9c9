"""Laws that hold for any shard: more work is never faster, more bandwidth never slower."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from timing_parts import catalogue_shard

from sim.catalog import load_catalog
from sim.timing import Shard, place, roofline

CATALOG = load_catalog()


def can_be_placed(node, precision, tp):
    """Whether a node has the GPUs and the precision for a shard."""
    chassis = CATALOG.nodes[node]
    return tp <= chassis.gpus and precision in CATALOG.gpus[chassis.gpu].dense_flops


DENSE = ("llama-3.1-8b", "llama-3.1-70b")
PLACEMENTS = [
    place(CATALOG, catalogue_shard(model, precision, tp), node, engine)
    for node in CATALOG.nodes
    for model in DENSE
    for precision in ("bf16", "fp8")
    for tp in (1, 8)
    for engine in CATALOG.engines
    if can_be_placed(node, precision, tp)
]
PLACEMENTS += [
    place(CATALOG, Shard(model, "native", "fp8", 8), "dgx-b200")
    for model in CATALOG.models.values()
    if model.name not in DENSE
]
TIMINGS = [roofline(placement) for placement in PLACEMENTS]
TABLES = [timing.decode_table(300) for timing in TIMINGS]

timings = st.sampled_from(TIMINGS)
tokens = st.integers(1, 200_000)
chunks = st.lists(st.tuples(tokens, st.integers(0, 200_000)), min_size=1, max_size=4)


def looks_back_by_chunks(timing):
    """Whether some layers of a timing's model see their own chunk only."""
    stack = timing.placement.shard.model.stack
    return any(layer.attention is not None and layer.attention.reach.chunk for layer in stack)


@given(timings, chunks, st.integers(1, 1000))
def test_a_token_more_is_never_faster(timing, batch, more):
    (new, cached), *rest = batch
    assert timing.prefill_ps(batch) <= timing.prefill_ps([(new + more, cached), *rest])
    if not looks_back_by_chunks(timing):  # the first tokens of a chunk have little to look at
        assert timing.prefill_ps(batch) <= timing.prefill_ps([(new, cached + more), *rest])


@given(timings, chunks, st.tuples(tokens, st.integers(0, 200_000)))
def test_a_prompt_more_is_never_faster(timing, batch, prompt):
    assert timing.prefill_ps(batch) <= timing.prefill_ps([*batch, prompt])


@given(timings, chunks)
def test_the_order_of_a_batch_does_not_matter(timing, batch):
    assert timing.prefill_ps(batch) == timing.prefill_ps(batch[::-1])


@given(timings, st.integers(2, 200_000))
def test_a_cached_prefix_never_makes_a_prompt_slower(timing, prompt):
    assert timing.prefill_ps([(prompt // 2, prompt - prompt // 2)]) <= timing.prefill_ps([(prompt, 0)])


@given(st.sampled_from(TABLES), st.integers(1, 299), st.integers(1, 10_000), st.integers(0, 10_000))
def test_a_sequence_more_is_never_faster(table, batch, each, last):
    # Each running sequence has some context; one more comes with its own.
    context = batch * each
    more = table.step_ps(batch + 1, context + max(each, last))
    # Where an engine limits each stream, its rate for b streams is rounded to whole picoseconds per token.
    is_limited = table.per_token_ps[1] != table.per_token_ps[-1]
    assert table.step_ps(batch, context) <= more + (context if is_limited else 0)


@given(st.sampled_from(TABLES), st.integers(1, 300), st.integers(0, 10**6), st.integers(1, 1000))
def test_more_context_is_never_faster(table, batch, context, more):
    assert table.step_ps(batch, context) < table.step_ps(batch, context + more)


@given(st.sampled_from(PLACEMENTS), chunks, st.sampled_from([1.01, 1.5, 4.0]))
def test_more_bandwidth_or_compute_is_never_slower(placement, batch, factor):
    gpu = placement.gpu
    slow = roofline(placement)
    for faster in (
        replace(gpu, memory_bytes_per_s=gpu.memory_bytes_per_s * factor),
        replace(gpu, dense_flops={name: rate * factor for name, rate in gpu.dense_flops.items()}),
    ):
        fast = roofline(replace(placement, gpu=faster))
        assert fast.prefill_ps(batch) <= slow.prefill_ps(batch)
        assert fast.decode_table(3).step_ps(3, 5000) <= slow.decode_table(3).step_ps(3, 5000)
