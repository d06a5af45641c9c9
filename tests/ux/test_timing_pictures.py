"""`sim roofline` and `sim validate --plot`: pictures that are pictures, and the numbers behind them."""

import struct

import pytest

from sim.catalog import load_catalog
from sim.cli import main
from sim.cli.roofline import Wish, roofline_figures
from sim.validate.comparison import Comparison, Comparisons
from sim.validate.picture import KINDS, OTHERS, figures_of
from sim.validate.sets import compared


def size_of(path):
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", head[16:24])


def test_a_roofline_is_drawn_and_told(capsys, tmp_path):
    path = tmp_path / "roof.png"
    assert main(["roofline", "h200", "llama-3.1-8b", "--weights", "fp8", "--out", str(path)]) == 0
    out = capsys.readouterr().out
    assert size_of(path) == (1425, 930)
    assert out.splitlines()[0] == "What holds back Llama 3.1 8B on NVIDIA H200 SXM5 141 GB"
    assert "attention itself" in out
    assert f"drawn: {path}" in out
    assert max(map(len, out.splitlines()[:-1])) <= 86


def test_a_roofline_may_be_an_svg(tmp_path):
    path = tmp_path / "roof.svg"
    assert main(["roofline", "b200", "gpt-oss-120b", "--weights", "native", "--out", str(path)]) == 0
    assert "<svg" in path.read_text()


def test_roofs_are_those_of_the_precisions_that_are_computed_in(tmp_path):
    def names(gpu, weights):
        model = "gpt-oss-120b" if weights == "native" else "llama-3.1-8b"
        wish = Wish(gpu, model, weights, 1, tmp_path / "x.png")
        return [roof["name"] for roof in roofline_figures(wish)["roofs"]]

    assert names("h200", "bf16") == ["bf16"]
    assert names("h200", "fp8") == ["bf16", "fp8"]
    assert names("b200", "native") == ["bf16", "fp8"]  # MXFP4 with inputs in FP8
    assert names("h200", "native") == ["bf16"]  # widened
    assert names("t4", "fp16") == ["fp16"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("h200", "llama-3.1-8b", "--out", "roof.gif"), "'roof.gif' is neither .png nor .svg"),
        (("h2000", "llama-3.1-8b"), "h2000"),
        (("h200", "llama-3.1-9b"), "llama-3.1-9b"),
        (("h200", "llama-3.1-8b", "--tp", "16"), "tp 16"),
    ],
)
def test_mistakes_are_told(capsys, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    assert main(["roofline", *words]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_every_gpu_of_a_node_has_a_roofline(tmp_path):
    catalog = load_catalog()
    for name in dict.fromkeys(node.gpu for node in catalog.nodes.values()):
        half = "bf16" if "bf16" in catalog.gpus[name].dense_flops else "fp16"
        figures = roofline_figures(Wish(name, "llama-3.1-8b", half, 1, tmp_path / "x.png"))
        assert figures["roofs"]
        assert len(figures["works"]) == 24


def test_a_set_is_drawn_beside_its_screen(capsys, tmp_path):
    assert main(["validate", "--set-name", "theory", "--plot", str(tmp_path / "pictures")]) == 0
    captured = capsys.readouterr()
    assert "theory: 19 comparisons" in captured.out
    assert "theory.png" in captured.out + captured.err
    assert size_of(tmp_path / "pictures" / "theory.png")[0] == 2205


def test_what_is_drawn_is_what_was_compared():
    found = compared("silicon")
    figures = figures_of(found)
    drawn = [(row["id"], row["metric"], row["predicted"], row["measured"]) for row in figures["rows"]]
    assert drawn == [(row.id, row.metric, row.predicted, row.measured) for row in found.rows]
    assert "tpot where fitted" in figures["subtitle"]


def test_small_kinds_share_a_colour():
    rows = tuple(
        Comparison(f"{kind}-{n}", "latency", 1.0, 1.0, "us", f"gpu: kind {kind}", "somebody")
        for kind in range(9)
        for n in range(9 - kind)
    )
    kinds = {row["kind"] for row in figures_of(Comparisons("measured", rows))["rows"]}
    assert kinds == {OTHERS, *(f"kind {kind}" for kind in range(KINDS - 1))}
