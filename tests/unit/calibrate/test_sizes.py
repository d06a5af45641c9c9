"""Which cases are measured."""

import pytest
from calibrate_parts import SHAPE

from sim.base.errors import UnsupportedError
from sim.calibrate.cases import Shape, StepCase, StepSet
from sim.calibrate.measure import section
from sim.calibrate.sizes import MOST_STEP_TOKENS, TABLES, Wanted, cases
from sim.catalog import load_catalog

MODELS = load_catalog().models
ALL = cases(Wanted(SHAPE), gpus=2)


def test_the_shape_is_that_of_the_catalogue():
    assert Shape.of(MODELS["llama-3.1-8b"]) == SHAPE
    config = MODELS["llama-3.1-8b"]
    assert SHAPE.matrix_bytes("bf16") == 2 * (config.parameters - config.small_parameters)
    assert SHAPE.kv_token_bytes("bf16") == config.kv_bytes_per_token("bf16")


@pytest.mark.parametrize("name", ["mixtral-8x7b", "deepseek-v3"])
def test_models_of_other_kinds_are_refused(name):
    with pytest.raises(UnsupportedError, match="only dense models"):
        Shape.of(MODELS[name])


def test_nothing_is_measured_twice():
    assert len(set(ALL)) == len(ALL)


def test_cases_of_a_table_come_together():
    names = [section(case) for case in ALL]
    starts = [name for i, name in enumerate(names) if i == 0 or names[i - 1] != name]
    assert len(starts) == len(set(starts))


def test_one_gpu_has_no_peer_and_no_all_reduce():
    alone = {str(case) for case in cases(Wanted(SHAPE), gpus=1)}
    more = {str(case) for case in ALL} - alone
    assert {text.partition(":")[0] for text in more} == {"copies", "all_reduce"}
    assert all("device-peer" in text or "all_reduce" in text for text in more)


def test_only_what_is_wanted():
    wanted = Wanted(SHAPE, precisions=("bf16",), tables=("gemm", "steps"))
    found = cases(wanted, gpus=2)
    assert {getattr(case, "of", None) for case in found} == {None, StepSet(SHAPE, "bf16", "bf16", 64)}
    assert {case.precision for case in found if case.table == "gemm"} == {"bf16"}


def test_steps_fit_the_cache_that_is_made_for_them():
    assert max(case.tokens for case in ALL if isinstance(case, StepCase)) <= MOST_STEP_TOKENS


def test_quick_takes_first_and_last_of_each_kind():
    few = cases(Wanted(SHAPE, quick=True), gpus=2)
    assert len(few) < len(ALL) / 10
    assert set(few) <= set(ALL)
    assert {section(case) for case in few} == {section(case) for case in ALL}
    gemms = [case for case in ALL if case.table == "gemm" and case.precision == "fp8"]
    assert {gemms[0], gemms[-1]} <= set(few)


def test_contexts_of_ragged_batches_are_the_same_everywhere():
    again = cases(Wanted(SHAPE), gpus=2)
    assert [case.row() for case in again] == [case.row() for case in ALL]
    ragged = [case for case in ALL if case.table == "ragged"]
    assert ragged[0].contexts[:4] == (1822, 978, 3398, 2739)


def test_every_table_can_be_asked_for():
    assert all(cases(Wanted(SHAPE, tables=(table,)), gpus=2) for table in TABLES)
