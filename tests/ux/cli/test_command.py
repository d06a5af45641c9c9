"""The command as a user meets it: output where it belongs, exit codes that tell the truth."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest
import results_parts as parts
from chat_parts import SCENARIO

from sim.base.errors import Advice, SimulationError
from sim.cli import check, listing, main, run
from sim.config.topology import KEYS_OF
from sim.results.run import Run
from sim.results.store import RUN_FILES

REPOSITORY = Path(__file__).parents[3]


def command(*words, cwd=REPOSITORY, **environment):
    """The command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "sim", *words],
        check=False,
        capture_output=True,
        text=True,
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": f"{REPOSITORY}:{os.environ.get('PYTHONPATH', '')}"} | environment,
    )


def test_help_lists_the_verbs_and_no_noise():
    found = command("--help")
    assert (found.returncode, found.stderr) == (0, "")
    verbs = [
        line.split()[0]
        for line in found.stdout.split("Commands:\n")[1].splitlines()
        if line.startswith("  ") and line.strip()
    ]
    expected = ["run", "compare", "sweep", "check", "list", "show", "diff", "roofline", "schema", "new"]
    expected += ["calibrate", "validate", "trace"]
    assert verbs[: len(expected)] == expected
    assert "--install-completion" not in found.stdout


@pytest.mark.parametrize("verb", ["run", "check", "list", "show", "diff", "schema", "new", "calibrate"])
def test_every_verb_explains_itself(verb):
    found = command(verb, "--help")
    assert (found.returncode, found.stderr) == (0, "")
    assert f"Usage: sim {verb}" in found.stdout


def test_help_and_lists_import_nothing_slow():
    code = (
        "import sys; from sim.cli import main; codes = [main(words.split()) for words in sys.argv[1:]]; "
        "slow = {'numpy', 'pandas', 'pyarrow', 'matplotlib', 'networkx', 'rich'} & set(sys.modules); "
        "print(codes, slow, file=sys.stderr)"
    )
    words = [
        "--help",
        "list gpus",
        "list nodes",
        "list links",
        "list models",
        "list engines",
        "list topologies",
        "list routers",
        "list readers",
        "list builders",
    ]
    found = subprocess.run(
        [sys.executable, "-c", code, *words], check=True, capture_output=True, text=True, cwd=REPOSITORY
    )
    assert found.stderr == f"{[0] * len(words)} set()\n"


@pytest.mark.parametrize(
    ("words", "stderr"),
    [
        (["rnu"], "No such command 'rnu'. Did you mean 'run'?"),
        (["run", "--sett", "x"], "No such option: --sett (Possible options: --set)"),
        (["run"], "Missing argument 'SCENARIO'."),
        (["list", "gpuz"], "unknown list 'gpuz'\n  hint: did you mean 'gpus'?\n"),
        (["list", "gpus", "b20"], "unknown GPU 'b20'\n  hint: did you mean 'b200'?\n"),
        (["schema", "sceario"], "unknown form 'sceario'\n  hint: did you mean 'scenario'?\n"),
        (["run", "nowhere.yaml"], "nowhere.yaml"),
        (
            ["run", "topologies/two-dgx-b200.yaml"],
            "topologies/two-dgx-b200.yaml: a topology, not a scenario\n"
            "  hint: name it in the `topology:` of a scenario, and run that; `sim check` takes both\n",
        ),
        (
            ["check", "tests"],
            "tests: a folder, but not of a run\n  hint: name a scenario file, or the folder of a saved run\n",
        ),
        (
            ["run", "tests"],
            "tests: a folder, but not of a run\n  hint: name a scenario file, or the folder of a saved run\n",
        ),
        (["trace", "info", "nowhere.jsonl"], "nowhere.jsonl"),
        (["trace", "get", "mooncake-conversatoin"], "did you mean 'mooncake-conversation'?"),
        (
            ["check", "nowhere.yaml"],
            "nowhere.yaml: no such file\n  hint: check the path; it starts in the current folder\n",
        ),
    ],
)
def test_a_mistake_of_the_user_ends_with_2_and_a_remedy(words, stderr):
    found = command(*words)
    assert found.returncode == 2
    assert found.stdout == ""
    assert stderr in found.stderr
    assert "Traceback" not in found.stderr


def test_lists_name_what_the_catalogue_has():
    assert re.search(r"^h100 +80 +3.350 +989 ", command("list", "gpus").stdout, re.MULTILINE)
    assert re.search(r"^nvlink-4 +NVLink 4", command("list", "links").stdout, re.MULTILINE)
    routers = command("list", "routers").stdout
    assert re.search(r"^least_loaded +The replica with the fewest outstanding tokens", routers, re.MULTILINE)
    assert "topologies/b200-4000-ib-ndr.yaml" in command("list", "topologies").stdout


def test_builders_are_the_kinds_of_fabrics_each_with_a_line():
    lines = command("list", "builders").stdout.splitlines()
    assert [line.split()[0] for line in lines] == sorted(KEYS_OF)
    assert all(len(line.split()) > 5 for line in lines)
    for words in (("list", "builders", "direct"), ("show", "builder", "direct")):
        assert "NIC i of one is cabled to NIC i of the other" in command(*words).stdout


NOT_NAMED = {"topology check", "check", "set"}
"""Registries whose names are written in no file: `sim check` and `sim validate` ask them all."""


def test_whatever_registry_has_names_for_files_can_be_listed():
    sources = [path.read_text() for path in sorted((REPOSITORY / "sim").rglob("*.py"))]
    kinds = [kind for source in sources for kind in re.findall(r"= Registry\(\"([a-z ]+)\"\)", source)]
    listed = {getattr(import_module(module), name).kind for module, name in listing.REGISTRIES.values()}
    assert len(kinds) == len(set(kinds))
    assert listed.isdisjoint(NOT_NAMED)
    assert set(kinds) == listed | NOT_NAMED
    assert set(listing.REGISTRIES) <= set(listing.KINDS)


def test_an_entry_is_shown_with_its_sources():
    found = command("list", "gpus", "b200").stdout
    assert found.startswith("b200: NVIDIA B200")
    assert "[primary: " in found


@pytest.mark.parametrize(
    ("kind", "form", "key"), [("scenario", "Scenario", "pools"), ("topology", "Topology", "fabric")]
)
def test_schema_is_json_of_the_form(kind, form, key):
    properties = json.loads(command("schema", kind).stdout)["$defs"][form]["properties"]
    assert {key, "extends"} <= properties.keys()
    assert ("variants" in properties) is (kind == "scenario")


def test_list_alone_lists_what_can_be_listed():
    found = command("list")
    assert (found.returncode, found.stderr) == (0, "")
    kinds = [line.split()[0] for line in found.stdout.splitlines()]
    assert kinds[:5] == ["gpus", "nodes", "links", "models", "engines"]
    for kind in kinds:
        listed = command("list", kind)
        assert (listed.returncode, listed.stderr) == (0, "")
        assert listed.stdout.count("\n") > 0


def test_version_is_that_of_the_package():
    assert command("--version").stdout == f"{version('kvfabric')}\n"


def test_a_known_trace_is_shown_with_its_source():
    found = command("list", "traces", "azure-code-2023").stdout.splitlines()
    assert found[0].startswith("azure-code-2023: one hour of a code completion service")
    assert found[1] == "  Patel et al., Splitwise, ISCA 2024; github.com/Azure/AzurePublicDataset, CC-BY-4.0"
    assert found[2].startswith("  https://")


def test_new_makes_a_study_once(tmp_path):
    made = command("new", str(tmp_path / "study"))
    assert made.returncode == 0
    assert sorted(path.name for path in (tmp_path / "study").iterdir()) == [
        "README.md",
        "scenario.yaml",
        "topology.yaml",
    ]
    (tmp_path / "study" / "scenario.yaml").write_text("mine")
    again = command("new", str(tmp_path / "study"))
    assert (again.returncode, again.stdout) == (2, "")
    assert again.stderr.splitlines() == [
        f"{tmp_path}/study: already there and not empty",
        "  hint: name a new folder; nothing is overwritten",
    ]
    assert (tmp_path / "study" / "scenario.yaml").read_text() == "mine"


TRACE_ROWS = [
    {"timestamp": 1000 * i, "input_length": 1024, "output_length": 5, "hash_ids": [0, i + 1], "tag": 1}
    for i in range(11)
]


def trace_file(folder, rows=TRACE_ROWS, end=""):
    path = folder / "t.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows) + end)
    return str(path)


def test_trace_info_says_what_is_in_a_file(tmp_path):
    found = command("trace", "info", trace_file(tmp_path, end="{broken\n"))
    assert found.returncode == 0
    assert (
        found.stdout
        == f"""\
{tmp_path}/t.jsonl   read as mooncake
  11 requests in 10.0 s: 1.10 requests/s, 1.10 in the busiest minute
  coefficient of variation of the gaps 0 (a Poisson stream has 1)
  22 blocks of 512 tokens, 45.5 % seen before
  a cache without limit would find 45.5 % of the prompt tokens
  more columns, not used: tag

                  mean     p50     p90     p99     max
  input tokens   1 024   1 024   1 024   1 024   1 024
  output tokens   5.00    5.00    5.00    5.00    5.00
"""
    )
    assert found.stderr.startswith("! 1 row cannot be used, first line 12: not JSON")


def test_trace_info_for_machines(tmp_path):
    found = command("trace", "info", trace_file(tmp_path, end="{broken\n"), "--json")
    assert (found.returncode, found.stderr) == (0, "")
    figures = json.loads(found.stdout)
    assert (figures["rows"], figures["skipped_rows"], figures["span_s"]) == (11, 1, 10.0)
    assert figures["reuse"]["seen_before_fraction"] == 10 / 22
    assert figures["extra_keys"] == ["tag"]
    assert figures["known"] is None
    (warning,) = figures["warnings"]
    assert warning["text"].startswith("1 row cannot be used")


def test_trace_info_takes_blocks_of_another_size(tmp_path):
    rows = [row | {"input_length": 32} for row in TRACE_ROWS]
    refused = command("trace", "info", trace_file(tmp_path, rows))
    assert refused.returncode == 2
    assert "all rows fit blocks of 16 tokens" in refused.stderr
    assert (
        "22 blocks of 16 tokens"
        in command("trace", "info", trace_file(tmp_path, rows), "--block-tokens", "16").stdout
    )


FORMATS = "--format takes azure, burstgpt, csv, mooncake or run\n"


@pytest.mark.parametrize(
    ("name", "text", "words", "told"),
    [
        (
            "a.txt",
            "hello\n",
            [],
            f"a.txt:1: cannot tell the format from the first line\n  hint: name it: {FORMATS}",
        ),
        (
            "a.jsonl",
            '{"at": 1}\n',
            [],
            "a.jsonl:1: none of 1 rows can be used; here: no 'timestamp' in this row\n"
            f"  hint: add 'timestamp'\n  hint: it was read as mooncake; {FORMATS}",
        ),
        (
            "a.csv",
            "TIMESTAMP,ContextTokens,GeneratedTokens\n",
            ["--format", "burstgpt"],
            "a.csv:1: no column for the input tokens\n"
            "  hint: name it request_tokens; the header has: TIMESTAMP, ContextTokens, GeneratedTokens\n"
            f"  hint: it was read as burstgpt; {FORMATS}",
        ),
        (
            "a.csv",
            "",
            ["--format", "mooncak"],
            f"--format mooncak: unknown trace format\n  hint: did you mean 'mooncake'? {FORMATS}",
        ),
        ("a.csv", "", ["--format", "xml"], f"--format xml: unknown trace format\n  hint: {FORMATS}"),
        ("a.csv", "", [], "a.csv: the file is empty\n  hint: give a file with a request on each line\n"),
    ],
    ids=["unclear", "not what it looks like", "wrong", "misspelt", "unknown", "empty"],
)
def test_a_trace_of_another_format_names_the_option_and_the_formats(tmp_path, name, text, words, told):
    (tmp_path / name).write_text(text)
    found = command("trace", "info", name, *words, cwd=tmp_path)
    assert (found.returncode, found.stdout, found.stderr) == (2, "", told)


def test_a_folder_that_is_no_run_is_no_trace(tmp_path):
    found = command("trace", "info", str(tmp_path))
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr == (
        f"{tmp_path}: a folder, but not of a run\n  hint: give a trace file, or the folder of a saved run\n"
    )


def test_a_reader_that_has_seen_enough_is_no_error():
    found = subprocess.run(
        f"{sys.executable} -m sim schema scenario | head -1",
        shell=True,
        check=True,
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
    )
    assert (found.stdout, found.stderr) == ("{\n", "")


@pytest.mark.parametrize(("words", "code"), [("list gpus", 0), ("run nowhere.yaml 2>&1", 2)])
def test_nobody_reading_changes_no_exit_code(words, code):
    """Output into a pipe that nobody reads."""
    script = f"{sys.executable} -m sim {words} | true; echo ${{PIPESTATUS[0]}}"
    found = subprocess.run(["bash", "-c", script], check=True, capture_output=True, text=True, cwd=REPOSITORY)
    assert (found.stdout, found.stderr) == (f"{code}\n", "")


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """A scenario in an empty folder, and an engine of which the test says what it does."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chat.yaml").write_text(SCENARIO)
    monkeypatch.setattr(check.checks, "check", lambda scenario: [])

    def will(play):
        monkeypatch.setattr(run.api, "run", play)

    return will


def answer(ttft_ms=100, **outcome):
    """An engine that finishes some requests, all as fast."""

    def play(scenario, sink, progress):
        columns = parts.request_columns(20)
        columns["first_token_ps"] = columns["arrived_ps"] + ttft_ms * parts.MS
        sink.requests(columns, [()] * 20)
        return Run.from_sink(sink, parts.outcome(**outcome), scenario)

    return play


def test_a_good_run_is_shown_and_saved(engine, capsys):
    engine(answer())
    assert main(["run", "chat.yaml"]) == 0
    out, err = capsys.readouterr()
    (folder,) = Path("runs").iterdir()
    assert "✓ ttft p90    100 ms < 500 ms\n" in out
    assert f"saved {folder}/" in out
    assert err == ""
    assert sorted(path.name for path in folder.iterdir()) == sorted(RUN_FILES)


def test_what_to_type_next_can_be_typed(engine, capsys, monkeypatch):
    engine(answer())
    monkeypatch.setattr(run.sys, "argv", [".venv/bin/sim", "run", "chat.yaml"])
    monkeypatch.setenv("PATH", "")
    main(["run", "chat.yaml"])
    assert "next  .venv/bin/sim run runs/chat-" in capsys.readouterr().out


def test_a_missed_slo_is_1(engine, capsys):
    engine(answer(ttft_ms=700))
    assert main(["run", "chat.yaml"]) == 1
    assert "✗ ttft p90    700 ms < 500 ms\n" in capsys.readouterr().out


def test_json_is_all_of_stdout(engine, capsys):
    engine(answer())
    assert main(["run", "chat.yaml", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["ttft_s"]["p50"] == pytest.approx(0.1)
    assert json.loads((Path(figures["folder"]) / "summary.json").read_text()) == {
        k: v for k, v in figures.items() if k != "folder"
    }


def test_overrides_reach_the_run_and_its_provenance(engine, capsys):
    engine(answer())
    assert (
        main(["run", "chat.yaml", "--set", "slo=[ttft p90 < 50 ms]", "--set", "run.seed=3", "--out", "mine"])
        == 1
    )
    provenance = json.loads(Path("mine/provenance.json").read_text())
    assert provenance["overrides"] == ["--set slo=[ttft p90 < 50 ms]", "--set run.seed=3"]
    assert provenance["seed"] == 3
    assert "ttft p90 < 50 ms" in Path("mine/scenario.yaml").read_text()


def test_an_out_that_is_full_ends_with_2_before_anything_runs(engine, capsys):
    engine(lambda *_, **__: pytest.fail("it ran"))
    Path("mine").mkdir()
    Path("mine/notes.txt").write_text("")
    assert main(["run", "chat.yaml", "--out", "mine"]) == 2
    assert capsys.readouterr().err.startswith("--out: mine is not empty\n")


def test_an_interrupted_run_is_saved_and_ends_with_130(engine, capsys):
    engine(answer(interrupted=True))
    assert main(["run", "chat.yaml"]) == 130
    (folder,) = Path("runs").iterdir()
    assert folder.name.endswith("-partial")
    assert "! interrupted: the figures are of the part that was simulated" in capsys.readouterr().out


def test_interrupted_before_there_is_anything_to_save(engine, capsys):
    def play(scenario, sink, progress):
        raise KeyboardInterrupt

    engine(play)
    assert main(["run", "chat.yaml"]) == 130
    assert list(Path("runs").iterdir()) == []


@pytest.mark.parametrize("error", [SimulationError("a request was lost"), ZeroDivisionError("x")])
def test_our_bug_is_3_and_leaves_a_folder_to_report(engine, capsys, error):
    def play(scenario, sink, progress):
        raise error

    engine(play)
    assert main(["run", "chat.yaml"]) == 3
    err = capsys.readouterr().err
    assert err.startswith("kept for your report: runs/chat-failed/\n")
    assert "this is a bug in the simulator: please report it with the run folder" in err
    assert "Traceback" not in err
    assert "Traceback" in Path("runs/chat-failed/error.txt").read_text()
    assert sorted(path.name for path in Path("runs").iterdir()) == ["chat-failed"]


def test_debug_shows_the_traceback(engine, capsys):
    engine(lambda *_, **__: 1 // 0)
    assert main(["run", "chat.yaml", "--debug"]) == 3
    assert "ZeroDivisionError" in capsys.readouterr().err.split("Traceback")[1]


def test_mistakes_found_by_checks_end_with_2(engine, capsys, monkeypatch):
    engine(lambda *_, **__: pytest.fail("it ran"))
    monkeypatch.setattr(
        check.checks,
        "check",
        lambda scenario: [scenario.document.error("model.name", "unknown model", "did you mean it?")],
    )
    assert main(["run", "chat.yaml"]) == 2
    assert capsys.readouterr().err.startswith("chat.yaml:4:9: model.name: unknown model\n")
    assert not Path("runs").exists()


def test_doubts_go_to_stderr_and_stop_nothing(engine, capsys, monkeypatch):
    engine(answer())
    monkeypatch.setattr(check.checks, "check", lambda scenario: [Advice("it is odd", "change it")])
    assert main(["run", "chat.yaml"]) == 0
    assert capsys.readouterr().err == "! it is odd\n  advice: change it\n"


def test_an_out_that_cannot_be_written_ends_with_2_before_anything_runs(engine, capsys):
    engine(lambda *_, **__: pytest.fail("it ran"))
    assert main(["run", "chat.yaml", "--out", "chat.yaml/mine"]) == 2
    assert capsys.readouterr().err.startswith("--out: cannot write in ")


def test_errors_of_a_file_end_with_2(engine, capsys):
    engine(lambda *_, **__: pytest.fail("it ran"))
    Path("bad.yaml").write_text(SCENARIO.replace("replicas: 1", "replicsa: 1"))
    assert main(["run", "bad.yaml"]) == 2
    assert "bad.yaml:6:36: pools.0.replicsa: unknown key" in capsys.readouterr().err


def test_a_folder_repeats_its_run_and_says_that_it_is_the_same(engine, capsys):
    engine(answer())
    main(["run", "chat.yaml"])
    (folder,) = Path("runs").iterdir()
    before = (folder / "provenance.json").read_bytes()
    capsys.readouterr()
    assert main(["run", str(folder)]) == 0
    assert f"✓ the digest matches that of {folder}\n" in capsys.readouterr().out
    assert (folder / "provenance.json").read_bytes() == before


def test_a_folder_whose_run_differs_says_so_and_ends_with_1(engine, capsys):
    engine(answer())
    main(["run", "chat.yaml"])
    (folder,) = Path("runs").iterdir()
    engine(answer(ttft_ms=120))
    capsys.readouterr()
    assert main(["run", str(folder)]) == 1
    assert f"✗ the digest differs from that of {folder}: " in capsys.readouterr().out
