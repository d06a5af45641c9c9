"""A replica of five numbers takes exactly what they say."""

from sim.timing import FixedTiming


def test_prefill_is_linear_in_new_tokens():
    timing = FixedTiming(prefill_base_ps=100, prefill_per_token_ps=7)
    assert timing.prefill_ps([(10, 0)]) == 170
    assert timing.prefill_ps([(10, 500), (1, 0)]) == 177


def test_decode_is_linear_in_sequences_and_context():
    table = FixedTiming(decode_base_ps=1000, decode_per_sequence_ps=10, decode_per_token_ps=3).decode_table(4)
    assert table.base_ps == [0, 1010, 1020, 1030, 1040]
    assert table.per_token_ps == [0, 3, 3, 3, 3]
    assert table.step_ps(2, 100) == 1320


def test_nothing_given_takes_no_time():
    assert FixedTiming().prefill_ps([(10, 0)]) == 0
    assert FixedTiming().decode_table(1).step_ps(1, 10) == 0
