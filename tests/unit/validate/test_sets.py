"""Sets by hand: errors, ids, mistakes in files, and what cannot be compared."""

import json

import pytest

from sim.base.errors import ConfigError, UnknownNameError, UnsupportedError
from sim.catalog.load import load_catalog
from sim.cli import main
from sim.cli.validate import as_json
from sim.timing.collective import Wire, collective
from sim.validate.comparison import Comparison, Comparisons, Errors
from sim.validate.devices import measured
from sim.validate.nccl import by_nccl
from sim.validate.page import page, percent
from sim.validate.published import published
from sim.validate.publishedentry import entries_of
from sim.validate.rows import rows_of
from sim.validate.servedruns import node_of
from sim.validate.sets import DATA, ORDER, compared, sets
from sim.validate.setup import Setup, model_named
from sim.validate.silicon import NEEDED, silicon

HEADER = ",".join(NEEDED)
ROW = "h200_sxm,meta-llama/Llama-3.1-8B-Instruct,vllm,fp8,512,16,2,1,1,1,30.0,5.0"


def row(predicted, measured, metric="tpot", fitted=False):
    return Comparison(f"{predicted}", metric, predicted, measured, "ms", "group", "somebody", fitted)


def written(tmp_path, *lines, name="rows.csv"):
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n")
    return path


def test_errors_are_parts_of_what_was_measured():
    errors = Errors.of([row(110, 100), row(80, 100), row(101, 100)])
    assert (errors.count, errors.median_abs, errors.worst_abs) == (3, pytest.approx(0.1), pytest.approx(0.2))
    assert errors.median_signed == pytest.approx(0.01)
    assert Errors.of([]) is None


def test_json_has_the_layout_that_was_promised():
    told = as_json(Comparisons("silicon", (row(11, 10), row(3, 2, "ttft"))))
    assert list(told) == ["set", "median_abs_error", "worst_abs_error", "rows", "not_comparable"]
    assert told["median_abs_error"] == {"ttft": 0.5, "tpot": pytest.approx(0.1)}
    assert list(told["rows"][0]) == ["id", "metric", "predicted", "measured", "error", "fitted"]


def test_rows_of_runs_become_both_metrics(tmp_path):
    found = silicon(written(tmp_path, "# where from", HEADER, ROW, ROW))
    assert [each.metric for each in found.rows] == ["ttft", "tpot"] * 2
    assert found.rows[0].id == "h200_sxm/Llama-3.1-8B-Instruct/vllm/fp8/512-16/tp1/c2"
    assert found.rows[2].id.endswith("#2")
    assert found.rows[0].predicted == found.rows[2].predicted > 0


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (("h200_sxm", "tpu"), "no node stands for system tpu"),
        (("Llama-3.1-8B", "Bloom-7B"), "the catalogue has no model like"),
        (("vllm", "lmdeploy"), "engine lmdeploy"),
        ((",2,1,1,1,", ",2,1,2,1,"), "experts or attention spread"),
        (("512,16", "4000000,16"), "does not fit"),
    ],
)
def test_what_cannot_be_simulated_is_listed_with_its_reason(tmp_path, changed, reason):
    found = silicon(written(tmp_path, HEADER, ROW.replace(*changed)))
    assert not found.rows
    assert reason in found.not_comparable[0].reason


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((HEADER.replace("isl", "islands"), ROW), "1: there is no column 'isl'"),
        ((HEADER, ROW.replace("30.0", "-1")), "2: silicon_ttft_ms: '-1' is not a number above 0"),
        ((HEADER, "# note", ROW.replace(",2,1,1,1", ",two,1,1,1")), "3: silicon_concurrency: 'two' is not"),
        ((HEADER, ROW + ",7"), "2: 13 cells where the header has 12"),
        (("# nothing",), "1: has no rows"),
    ],
)
def test_mistakes_are_told_at_their_line(tmp_path, lines, message):
    with pytest.raises(ConfigError) as caught:
        silicon(written(tmp_path, *lines))
    assert f"rows.csv:{message}" in str(caught.value)


def test_models_and_hardware_are_found_by_other_peoples_names():
    assert model_named("nvidia/Llama-3.1-8B-Instruct-FP8") == "llama-3.1-8b"
    assert model_named("deepseek-ai/DeepSeek-R1-0528") == "deepseek-r1"
    assert model_named("DeepSeek-V3.2") == "deepseek-v3.2"
    with pytest.raises(UnsupportedError):
        model_named("Kimi-K2.5")
    hardware = {entry.hardware: entry for entry in entries_of(DATA / "published.csv")}
    assert node_of(hardware["B200 180GB (DGX B200)"]) == "dgx-b200"
    with pytest.raises(UnsupportedError):
        node_of(hardware["NVIDIA H200-NVL-141GB"])


def test_the_kv_of_four_bit_models_is_bf16_where_the_gpu_has_no_fp4():
    assert Setup("hgx-h200", "gpt-oss-120b", "fp4", 1, "vllm").kv == "bf16"
    assert Setup("dgx-b200", "gpt-oss-120b", "fp4", 1, "vllm").kv == "fp8"
    assert Setup("dgx-b200", "llama-3.1-70b", "", 4, "vllm").kv == "bf16"


def test_a_published_product_and_a_link_that_the_catalogue_was_read_from(tmp_path):
    lines = (DATA / "published.csv").read_text().splitlines()
    header = next(line for line in lines if line.startswith("id,"))
    kept = [
        line
        for line in lines
        if line.startswith(("azure-gb200-gemm-fp8-8192,", "nvbw-h200-p2p-uni,", "weka-"))
    ]
    found = published(written(tmp_path, header, *kept))
    gemm, copied = found.rows if found.rows[0].metric == "throughput" else found.rows[::-1]
    assert (gemm.fitted, copied.fitted, copied.metric) == (False, True, "bandwidth")
    assert copied.error == pytest.approx(0, abs=0.01)
    assert {each.reason for each in found.not_comparable} == {
        "a property of a trace, which no timing model predicts"
    }


def test_published_entries_are_the_same_as_yaml(tmp_path):
    entry = entries_of(DATA / "published.csv")[0]
    keys = {key: getattr(entry, key) for key in entry.__slots__}
    path = written(tmp_path, json.dumps([keys]), name="rows.yaml")
    assert entries_of(path) == [entry]
    with pytest.raises(ConfigError, match="item 1: has no unit"):
        entries_of(written(tmp_path, '[{"id": "a", "value": 1, "metric": "x"}]', name="rows.yaml"))


def test_kernels_of_a_json_file(tmp_path):
    given = {
        "device": "NVIDIA H200",
        "gemm": [{"m": 4096, "n": 4096, "k": 4096, "bf16_s": 1.9e-4}],
        "decode_8b": [{"batch": 8, "context": 1024, "s": 0.0050}],
    }
    found = measured(written(tmp_path, json.dumps(given), name="kernels.json"))
    assert [each.id for each in found.rows] == [
        "kernels/gemm/bf16/4096x4096x4096",
        "kernels/llama-3-1-8b-bf16/decode/b8-c1024",
    ]
    assert all(abs(each.error) < 0.1 and not each.fitted for each in found.rows)
    with pytest.raises(ConfigError, match="does not have the parts"):
        measured(written(tmp_path, '{"gemm": [{"m": 1, "bf16_s": 1}]}', name="broken.json"))


def test_the_data_that_come_along_say_where_they_are_from():
    for name in ("silicon.csv", "published.csv"):
        head = (DATA / name).read_text().splitlines()[:4]
        assert all(line.startswith("#") for line in head[:3])
        assert "Apache-2.0" in " ".join(head)
    assert len(rows_of(DATA / "silicon.csv", NEEDED)) == 594
    ids = [entry.id for entry in entries_of(DATA / "published.csv")]
    assert len(ids) == len(set(ids)) > 800


def test_sets_have_names_and_unknown_ones_are_answered():
    assert set(sets) == set(ORDER)
    with pytest.raises(UnknownNameError, match="did you mean 'silicon'"):
        compared("silicone")
    with pytest.raises(UnsupportedError):
        compared("theory", DATA / "silicon.csv")


def test_the_page_keeps_fits_apart_and_counts_reasons():
    text = page([Comparisons("silicon", (row(11, 10), row(20, 10, fitted=True)))])
    assert "| silicon | tpot | 1 |  | 10 % | 10 % | +10 % |" in text
    assert "| silicon | tpot | 1 | fit | 100 % | 100 % | +100 % |" in text
    assert (percent(0.0514), percent(-0.3, True), percent(0.0)) == ("5.1 %", "−30 %", "0.0 %")


def test_the_command_writes_json_and_knows_its_mistakes(tmp_path, capsys):
    path = written(tmp_path, HEADER, ROW)
    assert main(["validate", "--set-name", "silicon", "--data", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["set"] == "silicon"
    assert main(["validate", "--set-name", "silicon", "--data", str(tmp_path / "none.csv")]) == 2
    assert main(["validate", "--data", str(path)]) == 2
    assert main(["validate", "--set-name", "silicon", "--data", str(path)]) == 0
    assert "tpot, all" in capsys.readouterr().out


def test_all_reduces_of_others_are_those_of_nccl():
    """Its own times for so many GPUs where they were measured; over nodes those of replicas are NCCL's."""
    catalog = load_catalog()
    link = catalog.links["nvlink-5"]
    size, time_ps = link.nccl_all_reduce[8][0]
    assert by_nccl(link, 8).curve()(size) == time_ps > collective(catalog, link, 8).curve()(size)
    assert by_nccl(link, 3).curve()(size) == collective(catalog, link, 3).curve()(size)
    wire = Wire(2, 400e9, 5_000_000)
    assert by_nccl(link, 8, wire).curve()(size) == collective(catalog, link, 8, wire).curve()(size)
