"""A measured table as a provider: host times, refusals, what counts as outside, and the tables that ship."""

from dataclasses import replace
from statistics import median

import numpy as np
import pytest
from timing_parts import catalogue_shard

from sim.base.errors import ConfigErrors, UnknownNameError, UnsupportedError
from sim.catalog import load_catalog
from sim.catalog.measurements import known_measurements, measurement_file
from sim.config.device import Device
from sim.config.load import load_form
from sim.config.scenario import Timing as Source
from sim.timing import Shard, place, roofline
from sim.timing.build import timing_of
from sim.timing.measured import Measured, measured

CATALOG = load_catalog()
TABLES = {name: load_form(Device, path) for name, path in known_measurements().items()}
SETS = [(name, i) for name, device in TABLES.items() for i, _ in enumerate(device.steps)]


def placement_of(steps, engine=None):
    """Where a set of steps was measured, under its engine or another."""
    shard = Shard(CATALOG.models[steps.model], steps.weights, steps.kv, steps.tp)
    return place(CATALOG, shard, "hgx-h200", engine or steps.engine or "reference")


def timing(name, i=0, engine=None):
    device = TABLES[name]
    return measured(device, placement_of(device.steps[i], engine), roofline)


@pytest.mark.parametrize(("name", "i"), SETS)
def test_shipped_tables_are_met_by_their_coefficients(name, i):
    found, steps = timing(name, i), TABLES[name].steps[i]
    assert found.prefill_error.points == len(steps.prefill)
    assert found.prefill_error.median == 0.0  # single prompts are exact
    assert found.prefill_error.worst < 0.05
    assert found.decode_error.median < 0.01
    assert found.decode_error.worst < 0.05
    assert found.ragged_error.median < 0.03


@pytest.mark.parametrize(("name", "i"), SETS)
def test_what_the_engine_asks_for_is_near_the_table(name, i):
    """End to end, with host times: measured wall or GPU time, and what the engine profile adds."""
    found, steps = timing(name, i), TABLES[name].steps[i]
    engine = placement_of(steps).engine
    host_ps = 0 if steps.clock == "wall" else engine.decode_host_time_ps
    table = found.decode_table(max(row.batch for row in steps.decode))
    errors = [
        (table.step_ps(len(row.contexts), sum(row.contexts)) - host_ps) / row.median_ps - 1
        for row in steps.ragged
    ]
    assert median(map(abs, errors)) < 0.03
    host_ps = 0 if steps.clock == "wall" else engine.prefill_host_time_ps
    launch_ps = 0 if steps.clock == "wall" else engine.prefill_launch_time_ps * 32
    for row in steps.prefill:
        told = found.prefill_ps([(row.new, row.cached)] * row.prompts) - host_ps
        assert told == pytest.approx(max(row.median_ps, launch_ps), rel=0.05)


def test_steps_by_the_table_itself_are_its_rows():
    found, steps = timing("h200-sxm"), TABLES["h200-sxm"].steps[0]
    host_ps = placement_of(steps).engine.decode_host_time_ps
    for row in steps.decode:
        assert found.step_ps([row.context] * row.batch) == row.median_ps + host_ps


def test_host_times_are_the_scenario_s_engine_s_where_the_gpu_was_timed():
    steps = TABLES["h200-sxm"].steps[0]
    placement = placement_of(steps)
    slow = replace(
        placement,
        engine=replace(placement.engine, decode_host_time_ps=10**10, prefill_host_time_ps=3 * 10**10),
    )
    one, other = (measured(TABLES["h200-sxm"], place, roofline) for place in (placement, slow))
    added = 10**10 - placement.engine.decode_host_time_ps
    assert other.decode_table(8).base_ps[8] - one.decode_table(8).base_ps[8] == added
    assert other.decode_table(8).per_token_ps == one.decode_table(8).per_token_ps
    assert other.prefill_ps([(1024, 0)]) - one.prefill_ps([(1024, 0)]) == (
        3 * 10**10 - placement.engine.prefill_host_time_ps
    )


def test_what_an_engine_takes_for_each_cached_token_is_added():
    for name in ("h200-sxm", "h200-paged-torch"):
        placement = placement_of(TABLES[name].steps[0])
        one, other = (
            measured(
                TABLES[name],
                replace(placement, engine=replace(placement.engine, prefill_cached_token_ps=each)),
                roofline,
            )
            for each in (0, 1000)
        )
        chunks = [(1024, 4096), (512, 0), (512, 100)]
        assert other.prefill_ps(chunks) - one.prefill_ps(chunks) == 1000 * 4196


def test_a_prefill_is_no_shorter_than_launching_it():
    placement = placement_of(TABLES["h200-sxm"].steps[0])
    engine = replace(placement.engine, prefill_launch_time_ps=10**9, prefill_host_time_ps=0)
    found = measured(TABLES["h200-sxm"], replace(placement, engine=engine), roofline)
    assert found.prefill_ps([(16, 0)]) == 32 * 10**9
    assert found.prefill_ps([(8192, 0)]) > 32 * 10**9


def test_padded_batches_cost_the_graph_that_runs():
    found = timing("h200-paged-torch")
    table = found.decode_table(32)
    assert table.base_ps[17] == table.base_ps[24]
    assert table.base_ps[16] < table.base_ps[17]


@pytest.mark.parametrize(
    ("model", "precision", "tp", "node", "engine", "problem", "nearest"),
    [
        (
            "llama-3.1-8b",
            "bf16",
            1,
            "dgx-b200",
            "reference",
            "h200-sxm was measured on h200, and the nodes have b200",
            "a table of that GPU, or kind: roofline",
        ),
        (
            "llama-3.1-70b",
            "fp8",
            8,
            "hgx-h200",
            "reference",
            "h200-sxm has no steps of llama-3.1-70b with weights fp8, kv fp8, tp 8",
            "llama-3.1-8b with weights bf16, kv bf16, tp 1, ",
        ),
    ],
)
def test_what_was_not_measured_is_refused(model, precision, tp, node, engine, problem, nearest):
    placement = place(CATALOG, catalogue_shard(model, precision, tp), node, engine)
    with pytest.raises(UnsupportedError) as refused:
        measured(TABLES["h200-sxm"], placement, roofline)
    assert refused.value.problem == problem
    assert refused.value.nearest.startswith(nearest)


def test_wall_times_are_good_for_their_engine_only():
    with pytest.raises(UnsupportedError, match="holds the host times of engine reference-h200"):
        timing("h200-paged-torch", engine="reference")


def test_a_table_without_steps_says_what_is_missing():
    device = TABLES["h200-sxm-pair"]
    placement = place(CATALOG, catalogue_shard("llama-3.1-8b", "bf16", 1), "hgx-h200")
    with pytest.raises(UnsupportedError) as refused:
        measured(device, placement, roofline)
    assert refused.value.nearest == "a table with prefill and decode steps"


def test_nothing_is_doubted_inside_the_table():
    found = timing("h200-sxm")
    found.prefill_ps([(1000, 0), (600, 3000)])
    found.beyond.see_segments({"batch": np.array([1, 512]), "steps": np.array([7, 9])})
    found.beyond.see_requests({"input_tokens": np.array([65_000]), "output_tokens": np.array([536])})
    assert list(found.beyond.doubts()) == []


def test_what_lies_outside_is_counted_and_told():
    found = timing("h200-sxm")
    for chunks in ([(1000, 0)], [(40_000, 0)], [(100, 70_000)], [(30_000, 0), (5_000, 0)]):
        found.prefill_ps(chunks)
    found.beyond.see_segments({"batch": np.array([1, 600]), "steps": np.array([70, 30])})
    found.beyond.see_segments({"batch": np.array([513]), "steps": np.array([100])})
    found.beyond.see_segments({"batch": np.array([], int), "steps": np.array([], int)})
    found.beyond.see_requests({"input_tokens": np.array([65_000, 10]), "output_tokens": np.array([537, 5])})
    texts = [doubt.text for doubt in found.beyond.doubts()]
    carries_on = "the roofline carries on there, scaled to meet the table"
    assert texts == [
        "3 of 4 prefills lie outside the measured table h200-sxm "
        f"(to 32,768 new and 65,536 cached tokens): {carries_on}",
        "130 of 200 decode steps had more sequences than the measured table h200-sxm "
        f"(up to 600, it has 512): {carries_on}",
        "1 of 2 sequences grew longer than any of the measured table h200-sxm "
        f"(to 65,537 tokens, it has 65,536): {carries_on}",
    ]


def test_a_source_becomes_a_provider(tmp_path):
    placement = placement_of(TABLES["h200-sxm"].steps[0])
    assert not isinstance(timing_of(placement, Source()), Measured)
    by_name = timing_of(placement, Source(kind="measured", table="h200-sxm"))
    assert isinstance(by_name, Measured)
    mine = tmp_path / "mine.yaml"
    mine.write_text(known_measurements()["h200-sxm"].read_text())
    by_path = timing_of(placement, Source(kind="measured", table=str(mine)))
    assert by_path.prefill_ps([(777, 0)]) == by_name.prefill_ps([(777, 0)])
    with pytest.raises(UnknownNameError, match="did you mean 'h200-sxm'"):
        measurement_file("h200-smx")


def test_a_bad_file_is_told_at_its_line(tmp_path):
    text = known_measurements()["h200-sxm-pair"].read_text()
    mine = tmp_path / "mine.yaml"
    mine.write_text(
        text.replace("median_us: 11.", "median_us: -11.", 1).replace("gpus: 2, bytes", "gpu: 2, bytes", 1)
    )
    placement = placement_of(TABLES["h200-sxm"].steps[0])
    with pytest.raises(ConfigErrors) as wrong:
        timing_of(placement, Source(kind="measured", table=str(mine)))
    line = next(i for i, row in enumerate(mine.read_text().splitlines(), 1) if "-11." in row)
    assert any(error.line == line for error in wrong.value.errors)
    assert any("did you mean 'gpus'?" in str(error) for error in wrong.value.errors)
