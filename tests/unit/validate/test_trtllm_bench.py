"""How many sequences and tokens trtllm-bench allows, by hand."""

import pytest

from sim.timing.fixed import FixedTiming
from sim.validate.closedloop import Load, Replica, Rule
from sim.validate.trtllmbench import tuned

TIMING = FixedTiming(
    prefill_base_ps=1,
    prefill_per_token_ps=1,
    decode_base_ps=1,
    decode_per_sequence_ps=1,
    decode_per_token_ps=1,
)
RULE = Rule(token_budget=8192, max_sequences=2048, is_chunked=False, mixes=True)


@pytest.mark.parametrize(
    ("kv_tokens", "lengths", "sequences", "tokens"),
    [
        (10_000, (500, 500), 64, 2048),  # 10 fit
        (100_100, (500, 500), 128, 2048),  # 100.1 fit, with 200.2 tokens
        (600_000, (500, 500), 640, 2048),  # 600 and 1,200
        (600_000, (800, 200), 640, 3072),  # 600 x 5 = 3,000
        (1_000_000, (900, 100), 1024, 10_240),  # 1,000 x 10
        (1_200_000, (200, 800), 1280, 2048),  # 1,200 and 1,500
        (50_000_000, (900, 100), 4096, 32_768),
        (256_000, (500, 500), 256, 2048),  # as many as it is, where it is a multiple
    ],
)
def test_sequences_and_tokens(kv_tokens, lengths, sequences, tokens):
    server = tuned(Replica(TIMING, RULE, kv_tokens), Load(1, 1, *lengths))
    assert (server.rule.max_sequences, server.rule.token_budget) == (sequences, tokens)
    assert (server.rule.is_chunked, server.rule.mixes, server.kv_tokens) == (False, True, kv_tokens)
