"""`sim calibrate`: what it says and writes, with a meter that makes times up, and without any GPU."""

import pytest
from calibrate_parts import FACTS, FakeMeter

from sim.base.errors import UnsupportedError
from sim.cli import calibrate as verb
from sim.cli import main
from sim.config.device import Device
from sim.config.load import load_form


@pytest.fixture
def meter(monkeypatch, tmp_path):
    """A fake meter in the place of torch's, in an empty folder; `proven` counts proofs of kernels."""
    meter = FakeMeter()
    meter.proven = 0

    def prove():
        meter.proven += 1

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(verb, "TorchMeter", lambda: meter)
    monkeypatch.setattr(verb, "prove", prove)
    monkeypatch.setattr(verb, "monotonic", meter.clock)
    monkeypatch.setattr("sys.argv", ["sim", "calibrate", "--quick"])
    return meter


def test_a_run_from_end_to_end(meter, tmp_path, capsys):
    assert main(["calibrate", "--quick", "--out", "mine.yaml", "--licence", "CC0-1.0"]) == 0
    said = capsys.readouterr()
    device = load_form(Device, tmp_path / "mine.yaml")
    assert device.hardware.catalogue == "h200"
    assert (device.origin.command, device.origin.licence) == ("sim calibrate --quick", "CC0-1.0")
    assert len(device.steps) == 3
    assert meter.closed
    assert meter.proven == 1
    assert "timing: {kind: measured, table: mine.yaml}" in said.out
    assert "gemm: 6 of 6 measured" in said.err
    assert said.err.startswith(f"{FACTS.gpu}, 1 of them, catalogue name h200\n")


def test_only_what_is_asked_for_is_measured_and_proven(meter, tmp_path):
    assert main(["calibrate", "--only", "gemm", "--precision", "fp8", "--quick"]) == 0
    device = load_form(Device, tmp_path / "device.yaml")
    assert {row.precision for row in device.gemm} == {"bf16", "fp8"}  # the LM head is never quantised
    assert {(row.n, row.precision) for row in device.gemm if row.precision == "bf16"} == {(128256, "bf16")}
    assert (device.copies, device.steps) == ([], [])
    assert meter.proven == 0


def test_a_limit_ends_it_and_says_what_is_missing(meter, tmp_path, capsys):
    assert main(["calibrate", "--quick", "--only", "steps", "--limit", "1 s"]) == 0
    device = load_form(Device, tmp_path / "device.yaml")
    assert device.left_out
    assert f"{len(device.left_out)} left out" in capsys.readouterr().out


def test_a_gpu_that_the_catalogue_does_not_know_is_written_without_a_name(meter, tmp_path, capsys):
    meter.described = FACTS.__class__(**{**vars_of(FACTS), "gpu": "NVIDIA Something New"})
    assert main(["calibrate", "--quick", "--only", "copies"]) == 0
    assert load_form(Device, tmp_path / "device.yaml").hardware.catalogue is None
    assert "catalogue name unknown: give --gpu" in capsys.readouterr().err


def vars_of(facts):
    return {name: getattr(facts, name) for name in facts.__slots__}


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--precision", "bf61"], "unknown precision 'bf61'\n  hint: did you mean 'bf16'?"),
        (["--only", "gems"], "unknown table 'gems'\n  hint: did you mean 'gemm'?"),
        (["--limit", "5"], "--limit 5: 5 has no unit"),
        (["--model", "llama-3.1-9b"], "unknown model 'llama-3.1-9b'"),
        (["--model", "mixtral-8x7b"], "only dense models with grouped-query attention are measured"),
        (["--gpu", "h201"], "unknown GPU 'h201'"),
        (["--out", "nowhere/device.yaml"], "nowhere/device.yaml: there is no such folder"),
        (["--out", "there.yaml"], "there.yaml: is already there\n  hint: name another file with --out"),
    ],
)
def test_mistakes_end_with_2_before_anything_is_measured(meter, tmp_path, capsys, words, problem):
    (tmp_path / "there.yaml").write_text("sim: 1\n")
    assert main(["calibrate", *words]) == 2
    assert problem in capsys.readouterr().err
    assert meter.measured == []
    assert (tmp_path / "there.yaml").read_text() == "sim: 1\n"


def test_a_dry_run_needs_nothing_and_writes_nothing(monkeypatch, tmp_path, capsys):
    def no_gpu():
        raise AssertionError("the meter was asked for")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(verb, "TorchMeter", no_gpu)
    assert main(["calibrate", "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    counts = {line[:34].strip(): int(line[34:40]) for line in lines if line[34:40].strip().isdigit()}
    assert counts["in all"] == sum(count for name, count in counts.items() if name != "in all")
    assert counts["llama-3-1-8b-bf16 decode"] == 48
    assert list(tmp_path.iterdir()) == []


def test_without_torch_there_is_a_remedy(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "torch", None)  # as if it were not installed
    assert main(["calibrate"]) == 2
    found = capsys.readouterr().err
    assert "measuring needs torch, which is not installed here" in found
    assert "pip install 'kvfabric[gpu]'" in found
    assert list(tmp_path.iterdir()) == []


def test_torch_without_a_gpu_says_so(monkeypatch, tmp_path, capsys):
    class NoCuda:
        __version__ = "2.11.0"

        class cuda:  # noqa: N801 - as torch calls it
            is_available = staticmethod(lambda: False)

        class version:  # noqa: N801
            cuda = "13.0"

    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "torch", NoCuda)
    assert main(["calibrate"]) == 2
    assert "torch 2.11.0 sees no NVIDIA GPU here\n  nearest: a machine on which `nvidia-smi` lists one" in (
        capsys.readouterr().err
    )


def test_wrong_kernels_are_not_timed(meter, monkeypatch, tmp_path, capsys):
    def prove():
        raise UnsupportedError("decode attention is wrong by 0.5 on this machine")

    monkeypatch.setattr(verb, "prove", prove)
    assert main(["calibrate", "--quick"]) == 2
    assert "decode attention is wrong by 0.5" in capsys.readouterr().err
    assert meter.measured == []
    assert meter.closed
