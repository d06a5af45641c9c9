"""`sim show model` and `sim list models`: narrow, true to the catalogue, and for a file as well."""

import json
from pathlib import Path

import pytest

from sim.catalog import load_catalog
from sim.cli import main

CATALOG = load_catalog()
FILES = Path(__file__).parents[1] / "data" / "hf"


def told(capsys, *words):
    assert main(list(words)) == 0
    return capsys.readouterr().out


def refused(capsys, *words):
    assert main(list(words)) == 2
    return capsys.readouterr().err.strip()


@pytest.mark.parametrize("name", CATALOG.models)
def test_every_model_has_a_narrow_screen(capsys, name):
    model, out = CATALOG.models[name], told(capsys, "show", "model", name)
    assert out.startswith(model.title)
    assert max(map(len, out.split("\n"))) <= 80
    assert all(node in out for node in CATALOG.nodes)


def test_the_screen_of_a_dense_model(capsys):
    lines = told(capsys, "show", "model", "llama-3.1-70b").split("\n")
    assert lines[0].split() == ["Llama", "3.1", "70B", "70.6", "B", "parameters"]
    assert "80 layers     64/8 heads of 128, MLP 28672" in lines
    assert "weights       BF16 141 GB, FP8 72.7 GB, FP4 42.7 GB" in lines
    assert "KV, a token   BF16 328 kB, FP8 164 kB" in lines
    (split,) = (line for line in lines if line.startswith("on each GPU"))
    assert "tp 8 20.5 kB" in split


def test_the_screen_of_a_mixture_with_windows(capsys):
    out = told(capsys, "show", "model", "gpt-oss-20b")
    assert "20.9 B parameters, 3.6 B active" in out
    assert "12 layers     64/8 heads of 64 over a window of 128, 4 of 32 experts of 2880" in out
    assert "published in MXFP4" in " ".join(out.split())
    assert "not quantised: attention, attention output" in " ".join(out.split())


def test_copies_of_a_latent_are_told(capsys):
    assert "tp 8 35.1 kB (8 copies)" in " ".join(told(capsys, "show", "model", "deepseek-v3").split())


def test_json_has_the_same_figures(capsys):
    model = CATALOG.models["deepseek-v3.2"]
    figures = json.loads(told(capsys, "show", "model", "deepseek-v3.2", "--json"))
    assert figures["parameters"] == model.parameters
    assert figures["weight_bytes"]["fp8"] == model.weight_bytes("fp8")
    assert figures["kv_bytes_per_token_per_gpu"]["bf16"]["4"] == model.kv_bytes_per_token("bf16")
    assert sum(group["count"] for group in figures["groups"]) == 61
    fits = {(fit["node"], fit["weights"]): fit["tp"] for fit in figures["fits"]}
    assert fits["hgx-h200", "fp8"] == 8
    assert fits["dgx-h100", "fp8"] is None
    assert ("hgx-h200", "fp4") not in fits  # Hopper has no FP4 rate


def test_a_file_is_shown_as_well(capsys):
    out = told(capsys, "show", "model", str(FILES / "linear-attention.json"))
    assert "3 layers      gated delta rule with 8 states of 8x8" in out
    assert "state 2.82 kB a sequence" in " ".join(out.split())


def test_a_file_that_is_not_there_and_a_name_that_is_not_known(capsys):
    assert refused(capsys, "show", "model", "no/config.json").startswith("no/config.json: no such file")
    assert "did you mean 'llama-3.1-8b'?" in refused(capsys, "show", "model", "llama-3-8b")


def test_a_mistake_in_a_file_is_told_at_its_line(capsys, tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{\n "model_type": "gpt5"\n}')
    assert refused(capsys, "show", "model", str(path)).startswith(
        f"{path}:2:2: model_type: 'gpt5' is not known"
    )


def test_every_model_is_listed_in_one_line(capsys):
    lines = told(capsys, "list", "models").strip().split("\n")
    assert [line.split()[0] for line in lines] == list(CATALOG.models)
