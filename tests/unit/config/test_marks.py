from __future__ import annotations

from pathlib import Path

from sim.config.marks import Mark, Node, Source, Written, plain

FILE = Source("a.yaml", Path("/study"), None, ("one: 1", "", "long: " + "x" * 200, "\tb: 説 c"))
MARK = Mark(FILE)


def node(value: object) -> Node:
    if isinstance(value, dict):
        return Node({key: node(item) for key, item in value.items()}, MARK)
    if isinstance(value, list):
        return Node([node(item) for item in value], MARK)
    assert value is None or isinstance(value, str | int | float)
    return Node(value, MARK)


TREE = node({"pools": [{"name": "a", "tp": 1}, {"name": "b", "tp": None}], "seed": 7})


def test_excerpt_points_at_the_column() -> None:
    assert Mark(FILE, 1, 6).excerpt() == "   1 | one: 1\n            ^"


def test_excerpt_of_a_long_line_is_cut_around_the_spot() -> None:
    text, caret = (Mark(FILE, 3, 150).excerpt() or "").split("\n")
    assert len(text) <= 7 + 100
    assert caret.index("^") < len(text)


def test_excerpt_counts_cells_not_characters() -> None:
    _, caret = (Mark(FILE, 4, 7).excerpt() or "").split("\n")
    assert caret.index("^") == 7 + len(" b: ") + 2 + len(" ")


def test_there_is_no_excerpt_of_nothing() -> None:
    assert Mark(FILE, 2, 1).excerpt() is None
    assert Mark(FILE, 9, 1).excerpt() is None


def test_a_mistake_in_an_override_has_no_line() -> None:
    error = Mark(Source("--set a=1", Path())).error("a", "unknown key")
    assert str(error) == "--set a=1: a: unknown key"


def test_items_are_found_by_key_name_and_index() -> None:
    by_name = [found.value for found in TREE.walk(("pools", "b", "tp"))]
    assert by_name[-1] is None
    assert len(by_name) == 4
    assert len(list(TREE.walk(("pools", "1", "tp")))) == 4
    assert [n.value for n in TREE.walk(("pools", "0", "tp"))][-1] == 1
    assert len(list(TREE.walk(("pools", "c", "tp")))) == 2
    assert len(list(TREE.walk(("pools", "2")))) == 2
    assert len(list(TREE.walk(("seed", "x")))) == 2


def test_plain_leaves_out_what_is_null() -> None:
    assert plain(TREE) == {"pools": [{"name": "a", "tp": 1}, {"name": "b"}], "seed": 7}


def test_text_knows_its_source() -> None:
    word = plain(node("x"))
    assert isinstance(word, Written)
    assert word == "x"
    assert word.source is FILE
