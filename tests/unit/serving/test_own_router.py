"""A router of the user's own: found beside the scenario, held to its signature and its answers."""

import re
from pathlib import Path

import pytest
from models.studies import SCENARIO, played, write

from sim import api
from sim.base.errors import ConfigError, ConfigErrors
from sim.config.dump import dump
from sim.results.store import input_files

DOCUMENT = Path(__file__).parents[3] / "docs" / "scenario-files.md"
TURNS = """\
def choose():
    turn = -1

    def choose(request, view):
        nonlocal turn
        turn = (turn + 1) % view.replicas
        return turn

    return choose
"""


def with_policy(policy, key="policy"):
    return SCENARIO.replace("run: {seed: 1}", f"router: {{{key}: {policy}}}\nrun: {{seed: 1}}")


def run(folder, source, policy="mine:choose", key="policy"):
    (folder / "mine.py").write_text(source)
    return played(folder, "workload.limit=60", scenario=with_policy(policy, key))


def documented():
    """The example of the documentation."""
    return re.search(r"```python mine\.py\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)[1]


def test_the_documented_example_runs(tmp_path):
    assert len(documented().splitlines()) <= 10
    found = run(tmp_path, documented())
    assert found.figures["requests_finished"] == 60
    assert found.requests["prefill_replica"].nunique() == 3


def test_it_does_what_the_registered_one_does(tmp_path):
    own = run(tmp_path, TURNS)
    theirs = played(tmp_path, "workload.limit=60", scenario=with_policy("round_robin"))
    assert own.digest == theirs.digest


def test_each_run_reads_the_file_anew(tmp_path):
    source = "turn = -1\ndef choose(request, view):\n    global turn\n    turn += 1\n    return turn % 3\n"
    assert run(tmp_path, source).digest == run(tmp_path, source).digest
    other = run(tmp_path, "def choose(request, view):\n    return 0\n")
    assert other.requests["prefill_replica"].unique().tolist() == [0]


def test_for_decode_too(tmp_path):
    found = run(tmp_path, "def choose(request, view):\n    return 2\n", key="decode_policy")
    assert found.requests["decode_replica"].unique().tolist() == [2]


def test_it_may_import_its_neighbours(tmp_path):
    (tmp_path / "numbers_of_mine.py").write_text("ONE = 1\n")
    source = "from numbers_of_mine import ONE\ndef choose(request, view):\n    return ONE\n"
    assert run(tmp_path, source).requests["prefill_replica"].unique().tolist() == [1]


def test_an_installed_module_will_do(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "installed_router.py").write_text(TURNS)
    monkeypatch.syspath_prepend(tmp_path / "elsewhere")
    found = played(tmp_path, "workload.limit=9", scenario=with_policy("installed_router:choose"))
    assert found.requests["prefill_replica"].nunique() == 3
    assert [path.name for path in input_files(found.scenario)][-1] == "installed_router.py"


def test_its_file_is_an_input_of_the_run(tmp_path):
    """So its hash is in the provenance."""
    found = run(tmp_path, TURNS)
    assert tmp_path / "mine.py" in input_files(found.scenario)


def test_the_scenario_of_a_run_finds_it_again(tmp_path):
    """In a folder of its own the file is named as seen from there."""
    scenario = run(tmp_path, TURNS).scenario
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "runs").mkdir()
    text = dump(scenario, tmp_path / "runs")
    assert "policy: ../mine.py:choose" in text
    (tmp_path / "runs" / "scenario.yaml").write_text(text)
    again = api.load(tmp_path / "runs" / "scenario.yaml")
    assert again == scenario


MISTAKES = {
    "no file": (None, "mine:choose", "there is no module mine"),
    "no such function": (
        "def chose(request, view):\n    return 0\n",
        "mine:choose",
        "mine.py has no 'choose'",
    ),
    "no function": ("choose = 3\n", "mine:choose", "'choose' of mine.py is no function"),
    "one argument": (
        "def choose(request):\n    return 0\n",
        "mine:choose",
        "'choose' of mine.py does not take a request and a view",
    ),
    "three arguments": (
        "def choose(request, view, more):\n    return 0\n",
        "mine:choose",
        "'choose' of mine.py does not take a request and a view",
    ),
    "an import that fails": (
        "import math\nimport no_such_thing\n",
        "mine:choose",
        "mine.py:2: ModuleNotFound",
    ),
    "no Python": ("def choose(:\n", "mine:choose", "mine.py:1: SyntaxError: "),
    "a module that is not installed": (None, "no.such.module:choose", "there is no module no.such.module"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_at_the_line_of_the_scenario(tmp_path, name):
    source, policy, problem = MISTAKES[name]
    if source is not None:
        (tmp_path / "mine.py").write_text(source)
    path = write(tmp_path, with_policy(policy))
    with pytest.raises(ConfigErrors) as caught:
        api.run(api.load(path))
    line = path.read_text().splitlines().index(f"router: {{policy: {policy}}}") + 1
    (error,) = caught.value.errors
    assert (error.line, error.key) == (line, "router.policy")
    assert error.problem.startswith(problem)
    assert error.hint


def test_a_misspelt_function_is_answered_with_the_nearest(tmp_path):
    (tmp_path / "mine.py").write_text("def chose(request, view):\n    return 0\n")
    with pytest.raises(ConfigErrors, match="did you mean 'chose'"):
        api.run(api.load(write(tmp_path, with_policy("mine:choose"))))


FAILURES = {
    "no replica": ("def choose(request, view):\n    return 3\n", r"choose: answered 3 .* replicas 0 to 2"),
    "no number": ("def choose(request, view):\n    return 'a'\n", "TypeError"),
    "an exception": ("def choose(request, view):\n    x = 1\n    return {}[7]\n", r"mine.py:3: KeyError: 7"),
    "a factory that fails": ("def choose():\n    return 1 / 0\n", r"mine.py:2: ZeroDivisionError"),
    "a factory of something else": ("def choose():\n    return 5\n", "'choose' returns no function"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_in_the_run_is_told_at_the_line_of_the_router(tmp_path, name):
    source, message = FAILURES[name]
    with pytest.raises(ConfigError, match=message):
        run(tmp_path, source)
