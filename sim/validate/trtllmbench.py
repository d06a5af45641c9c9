"""How trtllm-bench fills TensorRT-LLM's steps, which its published throughputs were measured with.

Model: as many sequences as the KV memory holds at full length, 4,096 at most, rounded up to 32 below 256, to
128 below 1,024, else to 256, and 64 at least. Of a step's tokens as many as keep prompts and outputs in
balance: sequences x (1 + input / output), 32,768 at most, rounded up to 256 below 4,096, to 512 below 8,192,
else to 1,024, and 2,048 at least.
Source: tensorrt_llm/bench/build/tuning.py of github.com/NVIDIA/TensorRT-LLM, commit 04cba882.
Ignores: its own estimate of memory, in place of which that of the replica is taken; and that the runtime may
lower both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sim.validate.closedloop import Load, Replica

MOST_SEQUENCES, FEWEST_SEQUENCES = 4096, 64
MOST_TOKENS, FEWEST_TOKENS = 32_768, 2048
SEQUENCE_STEPS = ((256, 32), (1024, 128), (MOST_SEQUENCES + 1, 256))
TOKEN_STEPS = ((4096, 256), (8192, 512), (MOST_TOKENS + 1, 1024))
"""Below the first number, multiples of the second."""


def tuned(replica: Replica, load: Load) -> Replica:
    """A replica as the benchmark starts it for prompts and outputs of these lengths."""
    length = load.input_tokens + load.output_tokens
    held = min(replica.kv_tokens / length, MOST_SEQUENCES)
    tokens = min(held * (1 + load.input_tokens / load.output_tokens), MOST_TOKENS)
    rule = replace(
        replica.rule,
        max_sequences=max(FEWEST_SEQUENCES, rounded_up(held, SEQUENCE_STEPS)),
        token_budget=max(FEWEST_TOKENS, rounded_up(tokens, TOKEN_STEPS)),
    )
    return replace(replica, rule=rule)


def rounded_up(value: float, steps: Sequence[tuple[int, int]]) -> int:
    """To the next multiple of the step for this size."""
    step = next(step for limit, step in steps if value < limit)
    return step * -int(-value // step)
