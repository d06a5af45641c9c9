from __future__ import annotations

from pathlib import Path

import pytest

from sim.base.errors import ValueProblem
from sim.config.marks import Source
from sim.config.paths import boundary, relative, resolve, resolve_name


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """repo/.git, repo/scenarios/chat.yaml, repo/topologies/dgx.yaml, and a file beside the repository."""
    repo = tmp_path / "repo"
    for folder in (".git", "scenarios", "topologies"):
        (repo / folder).mkdir(parents=True)
    (repo / "scenarios" / "chat.yaml").touch()
    (repo / "topologies" / "dgx.yaml").touch()
    (tmp_path / "secret").touch()
    return repo


def source(file: Path) -> Source:
    return Source(file.name, file.parent, boundary(file), ())


def test_the_boundary_is_the_repository(repository: Path) -> None:
    assert boundary(repository / "scenarios" / "chat.yaml") == repository


def test_the_boundary_without_a_repository_is_the_project_or_the_folder(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert boundary(tmp_path / "a" / "b" / "chat.yaml") == tmp_path / "a" / "b"
    (tmp_path / "a" / "pyproject.toml").touch()
    assert boundary(tmp_path / "a" / "b" / "chat.yaml") == tmp_path / "a"


def test_paths_start_at_the_file(repository: Path) -> None:
    chat = source(repository / "scenarios" / "chat.yaml")
    assert resolve("../topologies/dgx.yaml", chat) == repository / "topologies" / "dgx.yaml"
    assert resolve("traces/a.jsonl", chat) == repository / "scenarios" / "traces" / "a.jsonl"


@pytest.mark.parametrize("text", ["../../secret", "../topologies/../../secret", "link"])
def test_paths_do_not_leave(text: str, repository: Path) -> None:
    (repository / "scenarios" / "link").symlink_to(repository.parent / "secret")
    with pytest.raises(ValueProblem, match="leads out of the repository"):
        resolve(text, source(repository / "scenarios" / "chat.yaml"))


def test_a_neighbour_of_almost_the_same_name_is_outside(repository: Path) -> None:
    with pytest.raises(ValueProblem, match="leads out"):
        resolve("../../repo2/x", source(repository / "scenarios" / "chat.yaml"))


def test_absolute_paths_lead_anywhere(repository: Path) -> None:
    secret = repository.parent / "secret"
    assert resolve(str(secret), source(repository / "scenarios" / "chat.yaml")) == secret


def test_paths_from_outside_of_files_start_here_and_lead_anywhere(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository / "scenarios")
    assert resolve("../../secret") == repository.parent / "secret"
    assert resolve("../../secret", Source("--set topology=", Path.cwd())) == repository.parent / "secret"


@pytest.mark.parametrize("text", ["", "  ", "a\0b"])
def test_what_is_no_path(text: str) -> None:
    with pytest.raises(ValueProblem, match="is no path"):
        resolve(text)


def test_a_bare_word_is_a_name_unless_there_is_such_a_file(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository)
    assert resolve_name("conversation") == "conversation"
    assert resolve_name("traces/conversation") == str(repository / "traces" / "conversation")
    (repository / "conversation").touch()
    assert resolve_name("conversation") == str(repository / "conversation")
    assert resolve_name("x" * 5000) == "x" * 5000


def test_relative_climbs_inside_the_boundary_only(repository: Path) -> None:
    folder = repository / "runs" / "a"
    assert relative(str(repository / "topologies" / "dgx.yaml"), folder) == "../../topologies/dgx.yaml"
    assert relative(str(folder / "x.yaml"), folder) == "x.yaml"
    outside = str(repository.parent / "secret")
    assert relative(outside, folder) == outside
    assert relative("conversation", folder) == "conversation"
