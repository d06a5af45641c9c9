"""Measuring one case after the other: refusals, the time limit, and what is told and kept on the way."""

import pytest
from calibrate_parts import SHAPE, FakeMeter, seconds, session

from sim.calibrate.cases import CopyCase, DecodeCase, GemmCase, PrefillCase, StepSet
from sim.calibrate.measure import measured, section

OF = StepSet(SHAPE, "bf16", "bf16", 64)
GEMMS = [GemmCase(m, 4096, 4096, "bf16") for m in (1, 16, 256)]
CASES = [*GEMMS, CopyCase("host-device", 2**20), DecodeCase(OF, 4, 128), PrefillCase(OF, 1, 512, 0)]


def test_each_case_gets_the_median_of_its_times():
    results = measured(CASES, meter := FakeMeter(), session(meter))
    assert [case for case, _ in results.times] == CASES
    for case, summary in results.times:
        assert summary.median_us == pytest.approx(seconds(case) * 1e6, abs=0.1)
        assert summary.repetitions == 6
        assert 0 < summary.iqr_us <= 0.2
    assert results.refused == []
    assert results.left_out == []
    assert results.seconds == round(meter.clock.now_s, 1)


def test_a_refusal_is_noted_and_the_others_go_on():
    meter, lines = FakeMeter(refused={GEMMS[1]}), []
    results = measured(CASES, meter, session(meter, lines=lines))
    assert results.refused == [(GEMMS[1], "out of memory")]
    assert len(results.times) == len(CASES) - 1
    assert lines[0].endswith("gemm: 2 of 3 measured, 1 refused")


def test_what_the_limit_has_no_room_for_is_left_out():
    # Each GEMM takes eight calls; after the first of them the limit is over.
    meter, lines = FakeMeter(), []
    results = measured(CASES, meter, session(meter, limit_s=8.5 * seconds(GEMMS[0]), lines=lines))
    assert [case for case, _ in results.times] == CASES[:2]
    assert results.left_out == CASES[2:]
    assert lines[0].endswith("gemm: 2 of 3 measured, 1 left out for want of time")
    assert lines[-1].endswith("llama-3-1-8b-bf16 prefill: 0 of 1 measured, 1 left out for want of time")


def test_results_so_far_are_kept_after_each_table():
    meter, kept = FakeMeter(), []
    measured(CASES, meter, session(meter, kept=kept))
    assert kept == [3, 4, 5, 6]


def test_the_load_of_each_table_is_summarised():
    results = measured(CASES, meter := FakeMeter(), session(meter))
    assert [load.during for load in results.load] == list(dict.fromkeys(map(section, CASES)))
    load = results.load[0]
    assert (load.sm_clock_mhz, load.sm_clock_lowest_mhz, load.power_w, load.temperature_c) == (
        1900,
        1700,
        600.0,
        60.0,
    )
