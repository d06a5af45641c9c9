from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sim.base.errors import ConfigError, ConfigErrors
from sim.config import yamlfile
from sim.config.marks import Mark, Node, Source, plain


def parsed(text: str) -> tuple[Node | None, list[ConfigError]]:
    errors: list[ConfigError] = []
    return yamlfile.parse(text, Source("a.yaml", Path(), None, tuple(text.split("\n"))), errors), errors


def value(text: str) -> object:
    node, errors = parsed(text)
    assert not errors
    assert node is not None
    return plain(node)


def test_marks_are_those_of_the_keys() -> None:
    node, _ = parsed("a: 1\nb:\n  - c: 2\n  - [3, 4]\n")
    assert node is not None
    places = {
        path: (mark.line, mark.column)
        for path in ("a", "b", "b.0", "b.0.c", "b.1", "b.1.1")
        for mark in [[*node.walk(tuple(path.split(".")))][-1].mark]
    }
    assert places == {
        "a": (1, 1),
        "b": (2, 1),
        "b.0": (3, 5),
        "b.0.c": (3, 5),
        "b.1": (4, 5),
        "b.1.1": (4, 9),
    }


def test_marks_count_characters() -> None:
    node, _ = parsed("{é説😀: 1, b: 2}")
    assert node is not None
    assert node.items["b"].mark == Mark(node.mark.source, 1, 10)


def test_quoted_words_are_text() -> None:
    assert value("[1, '1', \"true\", true, '010', 'null', no]") == [1, "1", "true", True, "010", "null", "no"]


def test_keys_are_text() -> None:
    assert value("{1: a, no: b, 12:30: c}") == {"1": "a", "no": "b", "12:30": "c"}


def test_blocks_are_text() -> None:
    assert value("a: |\n  1\nb: >-\n  x\n  y\n") == {"a": "1\n", "b": "x y"}


def test_merge_keys_bring_what_is_not_written() -> None:
    text = "a: &a {x: 1, y: 2}\nb: &b {y: 3, z: 4}\nc: {<<: *a, x: 9}\nd: {<<: [*a, *b]}\n'<<': 5\n"
    assert value(text) == {
        "a": {"x": 1, "y": 2},
        "b": {"y": 3, "z": 4},
        "c": {"x": 9, "y": 2},
        "d": {"x": 1, "y": 2, "z": 4},
        "<<": 5,
    }


def test_a_duplicate_key_keeps_the_first_and_goes_on() -> None:
    node, errors = parsed("a: 1\na: 2\nb: 010\n")
    assert node is not None
    assert plain(node.items["a"]) == 1
    assert [(error.line, error.problem) for error in errors] == [
        (2, "the key is given twice"),
        (3, "010 starts with a zero, which some read as octal"),
    ]


def test_an_alias_bomb_is_refused_at_once() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 30)]
    with pytest.raises(ConfigErrors, match="too many values"):
        parsed("\n".join(lines))


@pytest.mark.parametrize("depth", [100, 1_000, 100_000])
@pytest.mark.parametrize(("start", "end"), [("[", "]"), ("{a: ", "}"), ("- ", "")])
def test_depth_is_bounded(depth: int, start: str, end: str) -> None:
    try:
        _, errors = parsed(start * depth + end * depth)
    except ConfigErrors as raised:
        errors = raised.errors
    assert [error.problem for error in errors] == ["nested too deeply"]


@given(st.text(alphabet="ab1:,-[]{}'\"#&*!|>%@ \n\té説", max_size=60))
def test_both_parsers_agree(text: str) -> None:
    """The fast parser gives what the pure one gives, marks included, or fails and is not asked again."""
    try:
        fast = yaml.compose(text, Loader=yamlfile.Fast)
    except yaml.YAMLError:
        return
    try:
        pure = yaml.compose(text, Loader=yamlfile.Pure)
    except yaml.YAMLError:
        return  # libyaml is more lenient here and there
    assert outline(fast) == outline(pure)


def outline(node: yaml.Node | None) -> object:
    if node is None:
        return None
    start = (node.start_mark.line, node.start_mark.column)
    if isinstance(node, yaml.ScalarNode):
        return start, node.value, node.tag, bool(node.style)
    if isinstance(node, yaml.MappingNode):
        return node.start_mark.line, [(outline(key), outline(item)) for key, item in node.value]
    return node.start_mark.line, [outline(item) for item in node.value]


def read(path: Path) -> str:
    errors: list[ConfigError] = []
    with pytest.raises(ConfigErrors) as caught:
        yamlfile.read(path, path.name, errors)
    return str(caught.value)


def test_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "chat.yaml").write_text("sim: 1")
    assert read(tmp_path / "caht.yaml") == "caht.yaml: no such file\n  hint: did you mean 'chat.yaml'?"
    assert read(tmp_path) == f"{tmp_path.name}: is a folder, not a file\n  hint: name a YAML file in it"
    nowhere = tmp_path / "no" / "chat.yaml"
    assert (
        read(nowhere)
        == f"chat.yaml: no such file\n  hint: there is no folder '{nowhere.parent}' to look into"
    )
    assert "cannot be read" in read(tmp_path / ("x" * 5000))
    os.mkfifo(tmp_path / "pipe")
    assert "is no YAML file" in read(tmp_path / "pipe")
    with (tmp_path / "big.yaml").open("wb") as file:
        file.truncate(yamlfile.LARGEST_FILE_BYTES + 1)
    assert "is no YAML file" in read(tmp_path / "big.yaml")


@pytest.mark.parametrize("text", ["\ufeffsim: 1\n", "sim: 1\r\n", "sim: 1", "---\nsim: 1\n...\n"])
def test_ways_of_writing_a_file(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(text.encode())
    errors: list[ConfigError] = []
    node = yamlfile.read(path, "a.yaml", errors)
    assert not errors
    assert node is not None
    assert plain(node) == {"sim": 1}
