"""Every measured table that ships: form and schema, where it comes from, whether its numbers can be true."""

import json
from pathlib import Path

import jsonschema
import pytest

from sim.catalog import load_catalog
from sim.catalog.measurements import known_measurements
from sim.config.device import Device
from sim.config.dump import dump
from sim.config.load import load_form

ROOT = Path(__file__).parents[2]
CATALOG = load_catalog()
PATHS = known_measurements()
TABLES = {name: load_form(Device, path) for name, path in PATHS.items()}
NUMBER_BYTES = {"bf16": 2, "fp8": 1}

names = pytest.mark.parametrize("name", TABLES)


@names
def test_it_keeps_to_its_form_and_schema(name):
    assert TABLES[name].name == name
    assert dump(TABLES[name], ROOT, in_rows=True) == PATHS[name].read_text()
    schema = json.loads((ROOT / "schemas" / "device.json").read_text())
    jsonschema.validate(TABLES[name].document.plain(), schema)


@names
def test_it_says_where_its_numbers_come_from(name):
    device = TABLES[name]
    origin = device.origin
    assert origin.source
    assert origin.licence == "Apache-2.0"
    assert origin.date.startswith("20")
    assert "torch" in origin.software
    assert origin.note
    assert device.hardware.catalogue in CATALOG.gpus
    if origin.command.startswith("sim calibrate"):
        assert {"driver", "cuda", "torch"} <= origin.software.keys()
        assert device.hardware.power_limit_w
        assert device.load
        rows = [*device.gemm, *device.copies, *(row for steps in device.steps for row in steps.decode)]
        assert min(row.repetitions for row in rows) >= 5


@names
def test_no_kernel_is_faster_than_its_gpu(name):
    device = TABLES[name]
    gpu = CATALOG.gpus[device.hardware.catalogue]
    for row in device.gemm:
        assert 2 * row.m * row.n * row.k / row.median_us * 1e6 < gpu.flops(row.precision)
        moved = NUMBER_BYTES[row.precision] * row.n * row.k
        assert moved / row.median_us * 1e6 < gpu.memory_bytes_per_s
    for row in device.attention_prefill:
        pairs = row.prompts * row.heads * row.head_dim * row.new * (row.cached + row.new / 2)
        assert 4 * pairs / row.median_us * 1e6 < gpu.flops("bf16")
    for row in device.attention_decode:
        tokens = sum(row.contexts) * (row.batch if len(row.contexts) == 1 else 1)
        moved = 2 * tokens * row.kv_heads * row.head_dim * NUMBER_BYTES[row.kv]
        assert moved / row.median_us * 1e6 < gpu.memory_bytes_per_s
    for row in device.copies:
        limit = {"device-device": gpu.memory_bytes_per_s, "device-peer": gpu.nvlink_bytes_per_s}
        # A device-device copy between buffers that fit the L2 need not come from memory.
        if row.direction != "device-device" or row.bytes >= 2**28:
            assert row.bytes / row.median_us * 1e6 < limit.get(row.direction, gpu.pcie_bytes_per_s)


@names
def test_no_step_is_faster_than_reading_its_weights(name):
    device = TABLES[name]
    gpu = CATALOG.gpus[device.hardware.catalogue]
    for steps in device.steps:
        model = CATALOG.models[steps.model]
        weights = model.weight_bytes(steps.weights, steps.tp) - 2 * model.vocab * model.hidden
        for row in (*steps.prefill, *steps.decode, *steps.ragged):
            assert weights / row.median_us * 1e6 < gpu.memory_bytes_per_s
        for row in steps.decode:
            kv = row.batch * row.context * model.kv_bytes_per_token(steps.kv)
            assert (weights + kv) / row.median_us * 1e6 < gpu.memory_bytes_per_s


@names
def test_more_work_takes_more_time_but_for_noise(name):
    for steps in TABLES[name].steps:
        rows = {(row.batch, row.context): row.median_us for row in steps.decode}
        for (batch, context), time in rows.items():
            assert all(t > 0.98 * time for (b, c), t in rows.items() if b >= batch and c >= context)


@names
def test_rows_are_there_once(name):
    device = TABLES[name]
    tables = [
        device.gemm,
        device.copies,
        device.all_reduce,
        device.attention_prefill,
        device.attention_decode,
    ]
    tables += [table for steps in device.steps for table in (steps.prefill, steps.decode, steps.ragged)]
    for table in tables:
        keys = [
            json.dumps(row.model_dump(exclude={"median_us", "iqr_us", "repetitions"}), sort_keys=True)
            for row in table
        ]
        assert len(set(keys)) == len(keys)
