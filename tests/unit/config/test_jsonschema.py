from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from sim.config.jsonschema import Kind, schema

KINDS: tuple[Kind, ...] = ("scenario", "topology", "device")


def problems(text: str, kind: Kind = "scenario") -> list[str]:
    validator = jsonschema.Draft202012Validator(schema(kind))
    return [error.message for error in validator.iter_errors(yaml.safe_load(text))]


@pytest.mark.parametrize("kind", KINDS)
def test_schemas_are_schemas_and_always_the_same(kind: Kind) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(kind))
    assert json.dumps(schema(kind)) == json.dumps(schema(kind))
    assert json.loads(json.dumps(schema(kind))) == schema(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_every_key_is_described(kind: Kind) -> None:
    for name, definition in schema(kind)["$defs"].items():
        assert definition.get("description"), name
        for key, item in definition["properties"].items():
            assert item.get("description"), f"{name}.{key}"


def test_a_scenario_that_is_right(text: str) -> None:
    assert problems(text) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("name: chat", "nmae: chat"),
        ("60 s", "60"),
        ("60 s", "60 sec"),
        ("20 req/s", "20 Gb/s"),
        ("role: decode", "role: decoder"),
        ("replicas: 2", "replicas: 0"),
        ("ttft p90 < 2 s", "ttft p95 < 2 s"),
        ("model: {name: llama-3.1-70b}\n", ""),
        ("run: {seed: 3}", "run: {sede: 3}"),
    ],
)
def test_a_scenario_that_is_wrong(right: str, wrong: str, text: str) -> None:
    assert right in text
    assert problems(text.replace(right, wrong)) != []


def test_a_patch_needs_nothing_but_is_checked() -> None:
    assert (
        problems("extends: chat.yaml\nrun: {seed: 2}\npools: [{name: decode, tp: 4}]\npools.prefill.tp: 4\n")
        == []
    )
    assert problems("run: {seed: 2}\n") != []
    assert problems("extends: chat.yaml\nrun: {sede: 2}\n") != []
    assert problems("extends: chat.yaml\npools: [{tp: 4}]\n") != []


def test_topologies_of_this_repository() -> None:
    files = sorted((Path(__file__).parents[3] / "topologies").glob("*.yaml"))
    assert files
    for file in files:
        assert problems(file.read_text(), "topology") == [], file.name
