"""Mistakes of a first day: each ends with 2, says what is wrong and what to do, and shows no traceback."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import chat_parts
import pytest

from sim.cli import main, new, run, topology, trace  # noqa: F401 - loaded before rights are given up
from sim.cli.trouble import explain

REPOSITORY = Path(__file__).parents[3]
SCENARIO = chat_parts.SCENARIO.replace("topology.yaml", "two.yaml")
FILES = {
    "chat.yaml": SCENARIO,
    "empty.yaml": "",
    "tabs.yaml": "sim: 1\n\tname: x\n",
    "text.yaml": "just text\n",
    "no-topology.yaml": SCENARIO.replace("two.yaml", "tow.yaml"),
    "far-topology.yaml": SCENARIO.replace("two.yaml", "b200-4000-ib-ndr"),
    "folder.yaml": SCENARIO.replace("two.yaml", "emptydir"),
    "itself.yaml": SCENARIO.replace("two.yaml", "itself.yaml"),
    "child.yaml": "sim: 1\nextends: emptydir\n",
}
IS_EMPTY = "the file is empty\n  hint: start with `sim: 1`\n"
HAS_TABS = "a tab where spaces belong\n   2 |  name: x\n       ^\n  hint: indent with spaces\n"
IS_TEXT = "the file is not a mapping\n"
IS_NO_RUN = "a folder, but not of a run\n  hint: name a scenario file, or the folder of a saved run\n"
IS_A_TOPOLOGY = (
    "two.yaml: a topology, not a scenario\n"
    "  hint: name it in the `topology:` of a scenario, and run that; `sim check` takes both\n"
)
ENDS = "  hint: write a node by its number, as GROUP/NUMBER, or `gpu N`\n"
START = "  hint: check the path; it starts in the current folder\n"

MISTAKES = {
    "run chatt.yaml": "chatt.yaml: no such file\n  hint: did you mean 'chat.yaml'?\n",
    "run chat": "chat: no such file\n  hint: did you mean 'chat.yaml'?\n",
    "run helo": "helo: no such file\n  hint: did you mean 'scenarios/hello.yaml'?\n",
    "run two-dgx-b200": "two-dgx-b200: no such file\n"
    "  hint: a topology has this name: put it under `topology:` of a scenario, and name that\n",
    "run nodir/x.yaml": "nodir/x.yaml: no such file\n  hint: there is no folder 'nodir' to look into\n",
    "run zzz": f"zzz: no such file\n{START}",
    "run emptydir": f"emptydir: {IS_NO_RUN}",
    "run empty.yaml": f"empty.yaml: {IS_EMPTY}",
    "run tabs.yaml": f"tabs.yaml:2:1: {HAS_TABS}",
    "run text.yaml": f"text.yaml:1:1: {IS_TEXT}",
    "run two.yaml": IS_A_TOPOLOGY,
    "run chat.yaml --set run.sed=2": "--set run.sed=2: unknown key 'sed'\n  hint: did you mean 'seed'?\n",
    "run chat.yaml --set pool.decode.tp=2": "--set pool.decode.tp=2: unknown key 'pool'\n",
    "run chat.yaml --set pools.decod.tp=2": "pools has no item 'decod'\n  hint: did you mean 'decode'?\n",
    "run chat.yaml --set workload.arrivals.rate=40": "40 has no unit\n  hint: add a unit, such as 40 req/s\n",
    "run chat.yaml --variant fast": "unknown variant 'fast'\n  hint: the file has no `variants:`\n",
    "run chat.yaml --out empty.yaml": "--out: empty.yaml is a file\n  hint: name a new or empty folder",
    "run no-topology.yaml": "no-topology.yaml:3:1: topology: there is no file tow.yaml\n",
    "check chatt.yaml": "chatt.yaml: no such file\n  hint: did you mean 'chat.yaml'?\n",
    "check two-dgx-b20": "two-dgx-b20: no such file\n  hint: did you mean 'topologies/two-dgx-b200.yaml'?\n",
    "check emptydir": f"emptydir: {IS_NO_RUN}",
    "check no-topology.yaml": "  hint: did you mean 'two.yaml'?\n",
    "check far-topology.yaml": "  hint: check the path; it starts at the file in which it is written; "
    "`sim list topologies` shows those that come along\n",
    "check folder.yaml": "folder.yaml:3:1: topology: emptydir is a folder, not a file\n",
    "check itself.yaml": "itself.yaml:3:1: topology: itself.yaml is a scenario, not a topology\n",
    "check child.yaml": "child.yaml:2:1: extends: is a folder, not a file: emptydir\n",
    "topo show tow.yaml": "tow.yaml: no such file\n  hint: did you mean 'two.yaml'?\n",
    "topo show two-dgx-b20": "unknown topology 'two-dgx-b20'\n  hint: did you mean 'two-dgx-b200'?\n",
    "topo show emptydir": "emptydir: is a folder, not a file\n  hint: name a topology file in it",
    "topo show empty.yaml": f"empty.yaml: {IS_EMPTY}",
    "topo show tabs.yaml": f"tabs.yaml:2:1: {HAS_TABS}",
    "topo stats text.yaml": f"text.yaml:1:1: {IS_TEXT}",
    "topo stats chat.yaml": "chat.yaml: a scenario, not a topology\n  hint: name its topology",
    "topo show two.yaml --scenario two.yaml": IS_A_TOPOLOGY,
    "topo show two.yaml --scenario chatt.yaml": "chatt.yaml: no such file\n  hint: did you mean 'chat.yaml'?",
    "topo show two.yaml --scenario emptydir": f"emptydir: {IS_NO_RUN}",
    "topo path two.yaml 0 2": "2: there is no node 2: two-dgx-b200 has 2\n  hint: count from 0 to 1\n",
    "topo path two.yaml -1 0": "-1: there is no node -1: two-dgx-b200 has 2\n  hint: count from 0 to 1\n",
    "topo path two.yaml gpu 0 gpu 16": "gpu 16: there is no GPU 16: two-dgx-b200 has 16\n  hint: count",
    "topo path two.yaml 0": f"sim topo path: needs two ends, not 1\n{ENDS}",
    "topo path two.yaml a b": f"a: is no node and no GPU\n{ENDS}",
    "topo path two.yaml 0 1 --jsn": "sim topo path: no option --jsn\n  hint: it has --json and --debug\n",
    "topo diff two.yaml emptydir": "emptydir: is a folder, not a file\n",
    "topo draw two.yaml --out nodir/x.png": "nodir/x.png: No such file or directory\n  hint: check the path",
    "topo draw two.yaml --run emptydir": "--run: there is no run in emptydir\n  hint: ",
    "new chat.yaml": "chat.yaml: is a file\n  hint: name a new folder; nothing is overwritten\n",
    "new chat.yaml/study": "chat.yaml/study: Not a directory\n  hint: a part of the path is a file; ",
    "list gpu": "unknown list 'gpu'\n  hint: did you mean 'gpus'?\n",
    "list builders ral": "unknown topology builder 'ral'\n  hint: choose from direct, explicit and ",
    "trace info emptydir": "emptydir: a folder, but not of a run\n  hint: give a trace file",
}


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder with what a newcomer has there, as the current one."""
    for name in ("scenarios", "topologies"):
        shutil.copytree(REPOSITORY / name, tmp_path / name)
    shutil.copy(REPOSITORY / "topologies" / "two-dgx-b200.yaml", tmp_path / "two.yaml")
    (tmp_path / "emptydir").mkdir()
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("words", MISTAKES)
def test_a_mistake_of_the_first_day(words, desk, capsys):
    assert main(words.split()) == 2
    shown, told = capsys.readouterr()
    assert shown == ""
    assert MISTAKES[words] in told
    assert "hint: " in told
    assert "Traceback" not in told
    assert not Path("runs").exists()


def test_all_files_are_checked_whatever_is_wrong_with_one(desk, capsys):
    assert main(["check", "nowhere.yaml", "chat.yaml", "two.yaml"]) == 2
    shown, told = capsys.readouterr()
    assert shown == "✓ chat.yaml: no mistakes\n✓ two.yaml: no mistakes\n"
    assert told == f"nowhere.yaml: no such file\n{START}"


@pytest.fixture
def nobody(desk, tmp_path):
    """Somebody without rights, also where tests are run by root; modules are loaded before."""
    Path("mine.yaml").write_text(SCENARIO)
    Path("mine.yaml").chmod(0)
    Path("ro").mkdir(0o555)
    tmp_path.chmod(0o755)
    was = os.geteuid()
    if was == 0:
        os.seteuid(65534)
    yield
    os.seteuid(was)


@pytest.mark.parametrize(
    ("words", "problem", "hint"),
    [
        ("run mine.yaml", "mine.yaml: cannot be read: Permission denied", "check the path and its rights"),
        ("check mine.yaml", "mine.yaml: cannot be read: Permission denied", "check the path and its rights"),
        (
            "topo show mine.yaml",
            "mine.yaml: cannot be read: Permission denied",
            "check the path and its rights",
        ),
        (
            "trace info mine.yaml",
            "mine.yaml: cannot be read: Permission denied",
            "check the path and its rights",
        ),
        ("new ro/study", "ro/study: Permission denied", "name what you have the right to read, and folders"),
    ],
)
def test_what_may_not_be_read_or_written(words, problem, hint, nobody, capsys):
    assert main(words.split()) == 2
    shown, told = capsys.readouterr()
    assert shown == ""
    assert told.startswith(f"{problem}\n  hint: {hint}")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EISDIR, errno.EIO])
def test_trouble_of_the_system_comes_with_a_remedy(number, capsys):
    assert explain(OSError(number, os.strerror(number), "runs/x")) == 2
    assert capsys.readouterr().err.startswith(f"runs/x: {os.strerror(number)}\n  hint: ")
