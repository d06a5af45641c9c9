"""Quality of fit on the H200: steps of the measured engine (Llama-3.1-8B shapes, bf16, one GPU).

The times are own measurements on an NVIDIA H200 SXM, November 2026. A few constants of the catalogue were
fitted on this data, so that this is no validation; it keeps the model from drifting away from it.
"""

from statistics import median

import pytest
from timing_parts import catalogue_shard

from sim.catalog import load_catalog
from sim.timing import place, roofline

DECODE = {  # (batch, context of each): milliseconds
    (1, 128): 4.595,
    (1, 4096): 5.040,
    (1, 16384): 6.351,
    (4, 2048): 5.003,
    (8, 8192): 6.675,
    (16, 1024): 5.372,
    (16, 16384): 12.932,
    (32, 512): 5.585,
    (32, 4096): 9.238,
    (64, 1024): 7.450,
    (64, 8192): 21.436,
    (128, 128): 6.848,
    (128, 4096): 22.284,
    (192, 1024): 13.346,
    (256, 2048): 24.377,
}
PREFILL = {  # tokens: milliseconds
    16: 9.253,
    256: 9.389,
    512: 11.984,
    1024: 21.778,
    2048: 45.174,
    4096: 94.627,
    8192: 227.161,
    12000: 336.886,
    16384: 559.155,
}


@pytest.fixture(scope="module")
def timing():
    return roofline(
        place(load_catalog(), catalogue_shard("llama-3.1-8b", "bf16", 1), "hgx-h200", "reference-h200")
    )


def test_decode_steps(timing):
    table = timing.decode_table(256)
    errors = [table.step_ps(b, b * c) / 1e9 / ms - 1 for (b, c), ms in DECODE.items()]
    assert median(map(abs, errors)) < 0.03
    assert max(map(abs, errors)) < 0.10


def test_prefills(timing):
    errors = [timing.prefill_ps([(n, 0)]) / 1e9 / ms - 1 for n, ms in PREFILL.items()]
    assert median(map(abs, errors)) < 0.06
    assert max(map(abs, errors)) < 0.10
