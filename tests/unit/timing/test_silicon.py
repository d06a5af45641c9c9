"""Times asked of aiconfigurator-core: with an engine of ours in its place, and with the real one where it is.

What is asked of ours follows a formula, so that what comes out of the table can be told by hand.
"""

from dataclasses import replace
from importlib.util import find_spec

import pytest
from timing_parts import catalogue_shard

from sim.base.errors import UnsupportedError
from sim.catalog import load_catalog
from sim.config.device import Device
from sim.config.dump import dump
from sim.config.load import load_form
from sim.config.pool import Timing as Source
from sim.timing import place, roofline
from sim.timing.build import timing_of
from sim.timing.measured import measured
from sim.timing.silicon import BATCHES, CONTEXTS, PROMPTS, cache_folder, device_of_answers, silicon_file

IS_THERE = find_spec("aiconfigurator_core") is not None
SILICON = Source(kind="silicon")


class Formula:
    """Prefill: 0.01 ms a token of new ones, 0.001 of cached; decode: 5 ms, 0.02 a sequence, 1e-5 a token."""

    def predict_prefill_latency(self, bs, isl, prefix=0):
        return bs * (0.01 * (isl - prefix) + 0.001 * prefix)

    def predict_decode_latency(self, bs, isl, osl=2):
        return 5 + 0.02 * bs + 1e-5 * bs * isl


class Broken:
    def predict_prefill_latency(self, bs, isl, prefix=0):
        raise KeyError("no rows of this kernel\nand much more")


def placed(model="llama-3.1-70b", node="hgx-h200", tp=4, engine="vllm", **changes):
    placement = place(load_catalog(), catalogue_shard(model, "fp8", tp), node, engine)
    return replace(placement, shard=replace(placement.shard, **changes))


def test_answers_become_a_table_whose_times_are_those_of_the_formula():
    placement = placed()
    timing = measured(device_of_answers(placement, Formula()), placement, roofline)
    engine = placement.engine
    launch_ps = 80 * engine.prefill_launch_time_ps
    assert timing.prefill_ps([(3000, 4096)]) == max(round(34.096e9), launch_ps, engine.prefill_host_time_ps)
    table = timing.decode_table(64)
    for batch, each in ((1, 1000), (64, 5000)):
        expected = 5e9 + 2e7 * batch + 1e4 * batch * each
        assert table.step_ps(batch, batch * each) == pytest.approx(expected, rel=1e-3)
    assert timing.decode_error.median < 1e-9


def test_the_table_holds_the_grid_as_far_as_the_model_reaches(tmp_path):
    device = device_of_answers(placed("mixtral-8x7b", tp=2), Formula())
    (steps,) = device.steps
    assert {row.batch for row in steps.decode} == set(BATCHES)
    assert {row.context for row in steps.decode} == {size for size in CONTEXTS if size <= 32_768}
    assert max(row.new + row.cached for row in steps.prefill) == 32_768
    assert {row.prompts for row in steps.prefill} == {1, 2, 4}
    assert max(row.new for row in steps.prefill) in PROMPTS


def test_what_cannot_be_answered_is_told_in_a_line():
    with pytest.raises(UnsupportedError) as caught:
        device_of_answers(placed(), Broken())
    assert (
        caught.value.problem
        == "aiconfigurator-core cannot say: 'no rows of this kernel\\nand much more'"[:200]
    )


@pytest.mark.parametrize(
    ("placement", "message"),
    [
        (placed(node="dgx-h100", engine="reference"), "knows no engine reference"),
        (placed("glm-4.5"), "knows no model glm-4.5"),
        (placed(node="hgx-h20"), "knows no GPU h20"),
        (placed(weights="int4"), "knows no weights in int4"),
    ],
)
def test_what_it_has_no_name_for_is_refused_with_what_it_has(placement, message):
    with pytest.raises(UnsupportedError) as caught:
        timing_of(placement, SILICON)
    assert message in caught.value.problem
    assert caught.value.nearest


@pytest.mark.skipif(IS_THERE, reason="NOT TESTED: the package is installed here")
def test_without_the_package_the_remedy_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(UnsupportedError, match="which is not installed") as caught:
        timing_of(placed(), SILICON)
    assert "pip install 'kvfabric[silicon]'" in caught.value.nearest


def test_a_table_that_is_there_needs_no_package(monkeypatch, tmp_path):
    """What was answered once is taken from the cache, and is a device file like any other."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert tmp_path in cache_folder().parents
    placement = placed()
    device = device_of_answers(placement, Formula())
    cache_folder().mkdir(parents=True)
    path = cache_folder() / f"{device.name}.yaml"
    path.write_text(dump(device, tmp_path, in_rows=True))
    assert silicon_file(placement) == path
    assert load_form(Device, path).steps == device.steps
    step_ps = timing_of(placement, SILICON).decode_table(32).step_ps(32, 32 * 512)
    assert step_ps == pytest.approx(5e9 + 2e7 * 32 + 1e4 * 32 * 512, rel=1e-6)


@pytest.mark.skipif(not IS_THERE, reason="NOT TESTED: aiconfigurator-core is not installed")
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("model", "tp", "engine"), [("llama-3.1-70b", 4, "trtllm"), ("llama-3.1-8b", 1, "vllm")]
)
def test_the_real_one_says_about_what_the_roofline_does(monkeypatch, tmp_path, model, tp, engine):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    placement = placed(model, tp=tp, engine=engine)
    timing, roof = timing_of(placement, SILICON), roofline(placement)
    assert list(tmp_path.rglob("*.yaml"))
    for batch in (1, 32, 128):
        ours, theirs = (each.decode_table(128).step_ps(batch, 2048 * batch) for each in (roof, timing))
        assert 0.5 < ours / theirs < 2
    assert 0.5 < roof.prefill_ps([(8192, 0)]) / timing.prefill_ps([(8192, 0)]) < 2
