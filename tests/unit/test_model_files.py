"""A scenario that names a config.json: found beside it, read, run; its mistakes told at its lines."""

import json
from pathlib import Path

import pytest

from sim import api, checks
from sim.base.errors import ConfigErrors
from sim.config.dump import dump
from sim.resolve import resolve
from sim.results.store import input_files

ROOT = Path(__file__).parents[2]
FILES = ROOT / "tests" / "data" / "hf"
HELLO = (ROOT / "scenarios" / "hello.yaml").read_text()
MODEL_LINE = "model: {name: llama-3.1-70b, weights: fp8, kv: fp8}"


def study(folder, model, config="windows-listed"):
    """A scenario with a model line of its own, and a config.json in a folder beside it."""
    (folder / "small").mkdir()
    (folder / "small" / "config.json").write_text((FILES / f"{config}.json").read_text())
    text = HELLO.replace("../topologies", str(ROOT / "topologies")).replace(MODEL_LINE, model)
    assert model in text
    (folder / "scenario.yaml").write_text(text.replace("tp: 4", "tp: 2"))
    return folder / "scenario.yaml"


@pytest.mark.parametrize(
    "model", ["model: small/config.json", "model: {name: small/config.json, weights: native, kv: bf16}"]
)
def test_a_config_beside_the_scenario(tmp_path, model):
    resolved = resolve(api.load(study(tmp_path, model)))
    shard = resolved.placements[0].shard
    assert shard.model.title == "small"
    assert shard.model.layers == 4
    assert shard.weights == ("native" if "native" in model else "fp8")


def test_a_name_alone_stands_for_its_model():
    short = api.load(ROOT / "scenarios" / "hello.yaml", sets=["model=qwen3-8b"])
    assert (short.model.name, short.model.weights, short.model.kv) == ("qwen3-8b", "fp8", "fp8")


def test_windows_decide_what_is_kept_and_moved(tmp_path):
    plan = resolve(api.load(study(tmp_path, "model: {name: small/config.json, kv: bf16}"))).plan
    # Four layers of 2 KV heads, keys and values of 16; two of them keep 128 tokens only.
    token = 4 * 2 * 2 * 16 * 2
    assert plan.kv_bytes_per_token == token
    assert plan.kv_limits == ((128, token // 2),)
    assert plan.kv_bytes(100) == 100 * token
    assert plan.kv_bytes(1128) == 1128 * token - 1000 * token // 2
    assert plan.kv_pages(100) == -(-100 // plan.page_tokens)
    assert plan.kv_pages(1128) == -(-628 // plan.page_tokens)


def test_states_come_with_every_sequence(tmp_path):
    plan = resolve(api.load(study(tmp_path, "model: small/config.json", "linear-attention"))).plan
    assert plan.kv_limits == ()
    assert plan.kv_bytes(0) == plan.kv_state_bytes > 0
    assert plan.kv_bytes(10) == plan.kv_state_bytes + 10 * plan.kv_bytes_per_token


def test_a_run_of_a_config(tmp_path):
    scenario = api.load(
        study(tmp_path, "model: {name: small/config.json, weights: native}"), sets=["run.duration=2 s"]
    )
    run = api.run(scenario)
    assert len(run.requests) > 10
    assert tmp_path / "small" / "config.json" in input_files(scenario)


def test_it_is_written_back_relative_to_where_it_is_saved(tmp_path):
    (tmp_path / "pyproject.toml").write_text("")
    scenario = api.load(study(tmp_path, "model: small/config.json"))
    assert "name: ../small/config.json" in dump(scenario, tmp_path / "runs")


def mistakes_of(path):
    with pytest.raises(ConfigErrors) as caught:
        resolve(api.load(path))
    return [str(error) for error in caught.value.errors]


def test_a_config_that_is_not_there(tmp_path):
    (mistake,) = mistakes_of(study(tmp_path, "model: smal/config.json"))
    assert mistake.startswith(f"{tmp_path}/scenario.yaml:8:1: model.name: there is no file")


def test_a_mistake_in_the_config_is_told_there(tmp_path):
    path = study(tmp_path, "model: small/config.json")
    config = tmp_path / "small" / "config.json"
    tree = json.loads(config.read_text()) | {"num_key_value_heads": 5}
    config.write_text(json.dumps(tree, indent=2))
    (mistake,) = mistakes_of(path)
    assert mistake.startswith(f"{config}:6:3: num_key_value_heads: 8 heads cannot share 5 KV heads evenly")


def test_a_split_that_cannot_be(tmp_path):
    path = study(tmp_path, "model: small/config.json")
    path.write_text(path.read_text().replace("tp: 2", "tp: 4"))
    assert not mistakes_or_none(path)
    path.write_text(path.read_text().replace("replicas: 2, tp: 4", "replicas: 1, tp: 8"))
    config = tmp_path / "small" / "config.json"
    tree = json.loads(config.read_text()) | {"num_attention_heads": 4}
    config.write_text(json.dumps(tree))
    first, *_ = mistakes_of(path)
    assert "tp 8 does not divide the 4 heads of small" in first
    assert "nearest: tp 4" in first


def mistakes_or_none(path):
    try:
        resolve(api.load(path))
    except ConfigErrors as wrong:
        return wrong.errors
    return []


def test_weights_other_than_the_checkpoints_are_doubted():
    def said(*sets):
        found = checks.check(api.load(ROOT / "scenarios" / "hello.yaml", sets=sets))
        return [str(each) for each in found if "checkpoint" in str(each)]

    (doubt,) = said("model=gpt-oss-20b")
    assert "gpt-oss 20B was published in MXFP4; FP8 is another checkpoint than its authors'" in doubt
    assert "weights: native" in doubt
    assert said("model={name: gpt-oss-20b, weights: native}") == []
    assert said() == []  # published in BF16: anybody may quantise it
