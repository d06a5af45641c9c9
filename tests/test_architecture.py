"""Who may import whom, which package may be used where, and how long files and functions may be.

A trespass is printed as `path:line: X must not import Y`. The rules are the tables below; a package that is
not in them is a trespass too, so whoever adds one must decide where it stands.
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MOST_LINES_OF_A_FILE = 400
MOST_LINES_OF_A_FUNCTION = 40

TOWER = ("base", "config", "catalog", "topology", "timing", "network", "kvpool", "serving")
"""Each may import those before it."""

MAY_IMPORT = {
    **{package: set(TOWER[:height]) for height, package in enumerate(TOWER)},
    "clock": set(),
    "tables": {"base"},
    "workload": {"base", "config"},
    "calibrate": {"base", "config", "catalog"},
    "results": {"base", "config", "catalog", "tables"},
    "report": {"base", "config", "catalog", "tables", "results"},
    "resolve": {*TOWER, "clock", "workload"},
    "checks": {*TOWER, "workload", "tables", "resolve"},
    "api": {*TOWER, "clock", "workload", "tables", "resolve", "checks", "results"},
    "bench": {*TOWER, "clock", "workload", "tables", "resolve", "api"},
    "whatif": {"base", "config", "tables", "results", "api"},
    "validate": {*TOWER, "clock", "workload", "tables", "resolve", "results", "api"},
    "cli": {
        "base",
        "config",
        "catalog",
        "topology",
        "timing",
        "network",
        "serving",
        "tables",
        "workload",
        "results",
        "report",
        "api",
        "checks",
        "calibrate",
        "whatif",
        "validate",
    },
    "__init__": {"api", "serving", "results", "report", "whatif"},
    "__main__": {"cli"},
}
for package in ("network", "kvpool", "serving"):
    MAY_IMPORT[package] |= {"clock", "tables"}
MAY_IMPORT["serving"] |= {"workload"}

ONLY_IN = {
    "simpy": ("clock", "network", "kvpool", "serving", "workload", "api", "bench"),
    "networkx": ("topology", "report"),
    "pandas": ("tables.sinks", "results", "report", "api", "whatif", "cli.compare", "cli.sweep"),
    "pyarrow": ("tables.sinks", "results", "report", "api", "workload.runrows"),
    "matplotlib": ("report",),
    "PIL": ("report.draw",),
    "rich": ("report", "cli"),
    "typer": ("cli",),
    "pydantic": ("config",),
    "pydantic_core": ("config",),
    "yaml": ("config", "catalog", "workload", "cli", "validate"),
    "pooch": ("workload.library", "timing.silicon"),
    "aiconfigurator_core": ("timing.silicon",),
    "joblib": ("whatif",),
    "scipy": ("results.intervals",),
    "torch": ("calibrate",),
    "triton": ("calibrate",),
    "numpy": (
        "base.streams",
        "timing",
        "tables",
        "workload",
        "network",
        "kvpool",
        "serving",
        "results",
        "report",
        "cli",
        "bench",
    ),
}
ONLY_INSIDE_FUNCTIONS = {
    "aiconfigurator_core",
    "joblib",
    "matplotlib",
    "PIL",
    "pooch",
    "scipy",
    "torch",
    "triton",
}
EVERYWHERE_IN = {"triton": ("calibrate.kernels",)}
"""Its compiler looks for names in the module of a kernel; that module is imported inside functions only."""
MAY_PRINT = ("cli", "report", "bench")
SLOW_PACKAGES = ("numpy", "pandas", "networkx", "matplotlib", "simpy", "pyarrow")


def is_in(module, places):
    """Whether a module (`serving.decode`) is one of some places or inside of one (`serving`)."""
    return any(module == place or module.startswith(f"{place}.") for place in places)


def imported(node):
    """The dotted names that an import statement brings in."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if node.module == "sim":
        return [f"sim.{alias.name}" for alias in node.names]
    return [node.module]


def import_trespasses(where, module, tree):
    """Imports of a module that the tables do not allow."""
    package = module.split(".")[0]
    top_level = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            yield f"{where}:{node.lineno}: sim.{module} must not import by a relative path"
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for name in imported(node):
                top, _, rest = name.partition(".")
                if top == "sim":
                    is_allowed = rest.split(".")[0] in {package} | MAY_IMPORT.get(package, set())
                elif top in sys.stdlib_module_names:
                    is_allowed = True
                else:
                    is_allowed = is_in(module, ONLY_IN.get(top, ()))
                    is_early = id(node) in top_level and top in ONLY_INSIDE_FUNCTIONS
                    if is_early and not is_in(module, EVERYWHERE_IN.get(top, ())):
                        is_allowed = False
                if not is_allowed:
                    yield f"{where}:{node.lineno}: sim.{module} must not import {name}"


def length_trespasses(where, module, source, tree):
    """Files and functions that are too long; a docstring does not count."""
    lines = len(source.splitlines())
    if lines > MOST_LINES_OF_A_FILE:
        yield f"{where}:{lines}: sim.{module} must not have more than {MOST_LINES_OF_A_FILE} lines"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = node.end_lineno - node.lineno + 1
            if ast.get_docstring(node) is not None:
                length -= node.body[0].end_lineno - node.body[0].lineno + 1
            if length > MOST_LINES_OF_A_FUNCTION:
                yield f"{where}:{node.lineno}: {node.name} must not have {length} lines"


def print_trespasses(where, module, tree):
    """Calls of print outside of what writes on the screen."""
    if is_in(module, MAY_PRINT):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            yield f"{where}:{node.lineno}: sim.{module} must not print"


def trespasses(root):
    """All trespasses of the package `sim` under a folder, in order of file and line."""
    found = []
    for path in sorted((root / "sim").rglob("*.py")):
        where = path.relative_to(root)
        parts = where.with_suffix("").parts[1:]
        module = ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)
        source = path.read_text()
        tree = ast.parse(source)
        if module.split(".")[0] not in MAY_IMPORT:
            found.append(f"{where}:1: sim.{module} must not be in a package without rules")
        found += import_trespasses(where, module, tree)
        found += length_trespasses(where, module, source, tree)
        found += print_trespasses(where, module, tree)
    return found


def test_everybody_keeps_to_the_rules():
    found = trespasses(ROOT)
    assert not found, "\n" + "\n".join(found)


def test_rules_are_about_what_is_there():
    """A rule for a package that has gone would hold nothing."""
    names = {path.stem for path in (ROOT / "sim").iterdir()}
    assert set(MAY_IMPORT) - names == set()


def test_the_command_line_starts_without_what_is_slow_to_import():
    code = f"import sys, sim.cli; print([name for name in {SLOW_PACKAGES} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


LONG_FUNCTION = "def long():\n" + "    x = 1\n" * 40
DOCUMENTED = 'def short():\n    """' + "words\n" * 30 + '"""\n' + "    x = 1\n" * 39
FAULTS = {
    "base/words.py": (
        "import json\nimport sim.config.form\n",
        "2: sim.base.words must not import sim.config.form",
    ),
    "results/run.py": (
        "from sim.tables import schema\n\n\ndef late():\n    from sim.serving.plan import Seat\n",
        "5: sim.results.run must not import sim.serving.plan",
    ),
    "report/text.py": ("from sim import serving\n", "1: sim.report.text must not import sim.serving"),
    "report/plots.py": (
        "import matplotlib.pyplot as plt\n",
        "1: sim.report.plots must not import matplotlib.pyplot",
    ),
    "config/form.py": ("from numpy import array\n", "1: sim.config.form must not import numpy"),
    "topology/graph.py": ("import networkx\nimport pandas\n", "2: sim.topology.graph must not import pandas"),
    "serving/decode.py": ("import networkx as nx\n", "1: sim.serving.decode must not import networkx"),
    "network/flows.py": (
        "from sim.clock import Clock\nfrom sim.kvpool import hbm\n",
        "2: sim.network.flows must not import sim.kvpool",
    ),
    "kvpool/cache.py": ("from . import tree\n", "1: sim.kvpool.cache must not import by a relative path"),
    "timing/curve.py": ("import scipy\n", "1: sim.timing.curve must not import scipy"),
    "tables/__init__.py": ("import sim.results\n", "1: sim.tables must not import sim.results"),
    "workload/trace.py": ("print('hello')\n", "1: sim.workload.trace must not print"),
    "catalog/load.py": ("# line\n" * 401, "401: sim.catalog.load must not have more than 400 lines"),
    "serving/prefill.py": (LONG_FUNCTION, "1: long must not have 41 lines"),
    "magic/__init__.py": ("", "1: sim.magic must not be in a package without rules"),
    "api.py": ("import sim.cli\n", "1: sim.api must not import sim.cli"),
}
INNOCENT = {
    "report/screen.py": "print('seen')\n\n\ndef plot():\n    import matplotlib.pyplot\n",
    "serving/job.py": "import simpy\nfrom sim.workload.request import Request\nfrom sim.clock import Clock\n",
    "api.py": "from sim import checks\nimport sim.results.run\n",
    "topology/cluster.py": "import networkx\nimport sim.catalog\nfrom sim.topology import graph\n",
    "catalog/fields.py": "# line\n" * 400,
    "kvpool/tree.py": DOCUMENTED,
    "base/streams.py": "import numpy as np\n",
}


def planted(folder, files):
    for name, source in files.items():
        path = folder / "sim" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return trespasses(folder)


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(tmp_path, name):
    source, message = FAULTS[name]
    assert planted(tmp_path, {name: source}) == [f"sim/{name}:{message}"]


def test_what_is_allowed_is_left_alone(tmp_path):
    assert planted(tmp_path, INNOCENT) == []
