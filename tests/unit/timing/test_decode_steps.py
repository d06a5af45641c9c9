"""Decode steps from a table: at its points, between them, at its edges and outside, against a naive twin."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import RegularGridInterpolator

from sim.config.device import DecodeStep, RaggedStep
from sim.timing import DecodeTable
from sim.timing.decodesteps import DecodeSteps, longest_factor
from sim.timing.fit import FitError, line

BATCHES, CONTEXTS = (1, 4, 16), (100, 1000, 5000)


def measured_us(batch, context):
    """A table that is a little bent, so that no line fits it exactly."""
    return 4000 + 25 * batch + 0.03 * batch * context + 0.002 * (batch * context) ** 0.9


ROWS = [
    DecodeStep(batch=batch, context=context, median_us=measured_us(batch, context))
    for batch in BATCHES
    for context in CONTEXTS
]


def roof(max_batch):
    """Another provider: half the base, and a time per token that grows with batch."""
    batches = range(1, max_batch + 1)
    return DecodeTable(
        [0, *(2_000_000_000 + 30_000_000 * b for b in batches)], [0, *(20_000 + 10 * b for b in batches)]
    )


STEPS = DecodeSteps(ROWS, roof)


def exact(batch):
    """An engine that pads nothing."""
    return batch


def test_the_table_is_told_exactly_at_its_points():
    for row in ROWS:
        assert STEPS.step_ps(row.batch, row.batch * row.context) == row.median_ps


@given(st.integers(1, 16), st.integers(100, 5000))
def test_between_its_points_it_is_the_grid_of_scipy(batch, context):
    grid = [[row.median_ps for row in ROWS if row.batch == b] for b in BATCHES]
    wanted = RegularGridInterpolator((BATCHES, CONTEXTS), np.array(grid))([[batch, context]])[0]
    assert STEPS.step_ps(batch, batch * context) == pytest.approx(wanted, rel=1e-12)


def test_outside_the_other_provider_carries_on_in_proportion():
    table = roof(64)
    edge = STEPS.step_ps(16, 16 * 1000)
    wanted = edge * table.step_ps(40, 40 * 1000) / table.step_ps(16, 16 * 1000)
    assert STEPS.step_ps(40, 40 * 1000) == pytest.approx(wanted)
    far = STEPS.step_ps(4, 4 * 5000) * table.step_ps(4, 4 * 9000) / table.step_ps(4, 4 * 5000)
    assert STEPS.step_ps(4, 4 * 9000) == pytest.approx(far)


def test_it_is_continuous_at_the_edges():
    for batch in BATCHES:
        for context in (100, 5000):
            near = [STEPS.step_ps(batch, batch * (context + shift)) for shift in (-1, 0, 1)]
            assert max(near) / min(near) < 1.001


def test_coefficients_are_lines_of_least_relative_squares():
    table = STEPS.table(16, exact)
    for batch in BATCHES:
        rows = [row for row in ROWS if row.batch == batch]
        tokens = np.array([row.batch * row.context for row in rows], float)
        times = np.array([row.median_ps for row in rows], float)
        slope, base = np.polyfit(tokens, times, 1, w=1 / times)
        assert table.base_ps[batch] == pytest.approx(base, rel=1e-9)
        assert table.per_token_ps[batch] == pytest.approx(slope, abs=0.51)


def test_between_batches_coefficients_lie_on_lines():
    table = STEPS.table(16, exact)
    assert table.base_ps[10] == pytest.approx((table.base_ps[4] + table.base_ps[16]) / 2, abs=1)
    assert table.per_token_ps[10] == pytest.approx(
        (table.per_token_ps[4] + table.per_token_ps[16]) / 2, abs=1
    )


def test_a_padded_batch_has_the_base_of_the_padded_one():
    padded = STEPS.table(16, lambda batch: 4 if batch <= 4 else 16)
    plain = STEPS.table(16, exact)
    assert padded.base_ps[1:] == [plain.base_ps[4]] * 4 + [plain.base_ps[16]] * 12
    assert padded.per_token_ps == plain.per_token_ps


def test_larger_batches_meet_the_table_at_any_context():
    table, other = STEPS.table(64, exact), roof(64)
    for batch in (17, 40, 64):
        assert table.base_ps[batch] == pytest.approx(
            table.base_ps[16] * other.base_ps[batch] / other.base_ps[16], rel=1e-9
        )
        assert table.per_token_ps[batch] == pytest.approx(
            table.per_token_ps[16] * other.per_token_ps[batch] / other.per_token_ps[16], rel=1e-4
        )
    for context in (10**3, 10**6):
        assert table.step_ps(17, context) / table.step_ps(16, context) < 1.03


def test_smaller_batches_than_the_table_has():
    steps = DecodeSteps([row for row in ROWS if row.batch > 1], roof)
    other = roof(16)
    table = steps.table(16, exact)
    assert table.base_ps[1] == pytest.approx(table.base_ps[4] * other.base_ps[1] / other.base_ps[4])


def test_one_context_takes_the_other_provider_s_shares():
    steps = DecodeSteps([ROWS[0]], roof)
    table, other = steps.table(1, exact), roof(1)
    assert table.step_ps(1, 100) == pytest.approx(ROWS[0].median_ps, rel=1e-6)
    assert table.per_token_ps[1] / other.per_token_ps[1] == pytest.approx(
        table.base_ps[1] / other.base_ps[1], rel=1e-4
    )


def test_the_error_of_fit_is_told():
    table = STEPS.table(16, exact)
    errors = [abs(table.step_ps(r.batch, r.batch * r.context) / r.median_ps - 1) for r in ROWS]
    assert STEPS.error.points == 9
    assert STEPS.error.worst == pytest.approx(max(errors), abs=1e-6)
    assert STEPS.error.median == pytest.approx(float(np.median(errors)), abs=1e-6)
    assert 0 < STEPS.error.worst < 0.05


def ragged(factor):
    """Unequal batches whose context costs more by a factor."""
    plain = STEPS.table(16, exact)
    found = []
    for contexts in ([100, 4000, 700, 90], [300] * 8 + [9000] * 8):
        tokens, batch = sum(contexts), len(contexts)
        time_ps = plain.base_ps[batch] + factor * plain.per_token_ps[batch] * tokens
        found.append(RaggedStep(contexts=contexts, median_us=time_ps / 1e6))
    return found


def test_unequal_contexts_raise_the_time_per_token_by_one_factor():
    steps = DecodeSteps(ROWS, roof, ragged(1.25))
    assert steps.unevenness == pytest.approx(1.25, rel=1e-4)
    assert steps.ragged_error.points == 2
    assert steps.ragged_error.worst < 1e-4
    table, plain = steps.table(16, exact), STEPS.table(16, exact)
    assert table.base_ps == plain.base_ps
    assert table.per_token_ps[1] == plain.per_token_ps[1]  # one sequence is never uneven
    assert table.per_token_ps[9] == pytest.approx(1.25 * plain.per_token_ps[9], rel=1e-4)
    assert steps.step_ps(4, 4000) == STEPS.step_ps(4, 4000)  # the table itself is of equal ones
    assert steps.uneven_ps(4, 4000) == pytest.approx(0.25 * plain.per_token_ps[4] * 4000, rel=1e-3)


def test_small_batches_wait_for_their_longest_sequence():
    """A token alone takes three times what it takes among many: of two, the longest is 1.5 times the mean."""
    assert longest_factor(2, 3.0) == pytest.approx(((1 + 8 * 0.75**2) / (1 + 8 * 0.5**2)) ** 0.5)
    assert longest_factor(2, 1.0) == longest_factor(64, 1.0) == 1.0  # streams are no limit
    assert longest_factor(4, 3.0) > longest_factor(32, 3.0) > longest_factor(256, 3.0) > 1.0
    assert longest_factor(256, 3.0) < 1.01


def test_unequal_contexts_never_make_a_step_shorter():
    assert DecodeSteps(ROWS, roof, ragged(0.8)).unevenness == 1.0


@given(st.lists(st.tuples(st.integers(1, 10**6), st.integers(1, 10**6)), min_size=2, max_size=9))
def test_lines_are_those_of_numpy(points):
    x, y = (np.array(side, float) for side in zip(*points, strict=True))
    if len(set(x)) < 2:
        return
    slope, base = np.polyfit(x / 1e6, y, 1, w=1 / y)
    mine = line(points)
    if slope > 0:
        assert mine[1] * 1e6 == pytest.approx(slope, rel=1e-4, abs=1e-4 * abs(base))
        assert mine[0] == pytest.approx(base, rel=1e-4, abs=1e-4 * slope)
    else:
        assert mine[1] == pytest.approx(0.0, abs=1e-9)


def test_errors_of_nothing_are_none():
    assert FitError.of([]) == FitError(0, 0.0, 0.0)
    assert FitError.of([(110, 100), (95, 100), (100, 100)]) == FitError(
        3, pytest.approx(0.05), pytest.approx(0.1)
    )
