"""From results to a file and back."""

import pytest
import yaml
from calibrate_parts import FACTS, SHAPE, FakeMeter, session

from sim.calibrate.devicefile import Provenance, catalogue_name, device_of, save
from sim.calibrate.measure import measured
from sim.calibrate.sizes import Wanted, cases
from sim.catalog import load_catalog
from sim.config.device import Device
from sim.config.load import load_form

PROVENANCE = Provenance("my-h200", "h200", "2026-11-30", "sim calibrate", "us, on our own", "CC0-1.0")
CASES = cases(Wanted(SHAPE), gpus=2)


@pytest.fixture(scope="module")
def results():
    meter = FakeMeter(refused={CASES[3]})
    return measured(CASES, meter, session(meter, limit_s=100.0))


@pytest.fixture(scope="module")
def device(results):
    return device_of(results, FACTS, PROVENANCE)


def test_every_case_finds_its_row(results, device):
    tables = (
        device.gemm,
        device.attention_prefill,
        device.attention_decode,
        device.copies,
        device.all_reduce,
    )
    rows = sum(map(len, tables))
    rows += sum(len(steps.prefill) + len(steps.decode) + len(steps.ragged) for steps in device.steps)
    assert rows == len(results.times) == len(CASES) - 1
    for row, (case, summary) in zip(
        device.gemm, [pair for pair in results.times if pair[0].table == "gemm"], strict=True
    ):
        assert (row.m, row.n, row.k, row.precision) == (case.m, case.n, case.k, case.precision)
        assert (row.median_us, row.iqr_us, row.repetitions) == (
            summary.median_us,
            summary.iqr_us,
            summary.repetitions,
        )


def test_a_file_says_where_its_numbers_come_from(device):
    assert device.hardware.catalogue == "h200"
    assert device.hardware.power_limit_w == 700.0
    assert device.origin.software == {"driver": "580.1", "torch": "2.11.0", "cuda": "13.0"}
    assert (device.origin.source, device.origin.licence) == ("us, on our own", "CC0-1.0")
    assert [refusal.reason for refusal in device.refused] == ["out of memory"]
    assert {load.during for load in device.load} >= {"gemm", "copies", "llama-3-1-8b-fp8 decode"}


def test_what_is_saved_is_what_is_read(device, tmp_path):
    save(device, tmp_path / "my-h200.yaml")
    assert load_form(Device, tmp_path / "my-h200.yaml") == device
    assert [path.name for path in tmp_path.iterdir()] == ["my-h200.yaml"]


def test_a_row_is_a_line_with_its_times_last(device, tmp_path):
    save(device, tmp_path / "my-h200.yaml")
    lines = (tmp_path / "my-h200.yaml").read_text().splitlines()
    row = next(line for line in lines if line.startswith("- {m: 16, n: 6144, k: 4096, precision: fp8, "))
    assert list(yaml.safe_load(row)[0])[-3:] == ["median_us", "iqr_us", "repetitions"]
    assert len(lines) < len(CASES) + 100


def test_steps_are_of_the_gpu_alone(device):
    assert [(steps.name, steps.weights, steps.kv) for steps in device.steps] == [
        ("llama-3-1-8b-bf16", "bf16", "bf16"),
        ("llama-3-1-8b-fp8-kv-bf16", "fp8", "bf16"),
        ("llama-3-1-8b-fp8", "fp8", "fp8"),
    ]
    assert {(steps.clock, steps.engine, steps.model) for steps in device.steps} == {
        ("gpu", None, "llama-3.1-8b")
    }


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("NVIDIA H200", "h200"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("NVIDIA H100 NVL", "h100-nvl"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm-80gb"),
        ("NVIDIA A100 80GB PCIe", None),
        ("NVIDIA H200 NVL", None),
        ("NVIDIA L4", "l4"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000-server"),
        ("Tesla T4", "t4"),
        ("NVIDIA Something New", None),
    ],
)
def test_a_driver_s_name_finds_its_entry_or_none(said, name):
    assert catalogue_name(said, list(load_catalog().gpus)) == name
