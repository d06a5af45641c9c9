"""`sim check`: what can be said about files without simulating."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from sim import checks
from sim.base.errors import Advice, ConfigError, ConfigErrors, SimError
from sim.cli.trouble import GOOD, YOUR_INPUT, say
from sim.cli.variants import findings_of
from sim.config.load import variants_in
from sim.config.scenario import Scenario
from sim.report.text import show
from sim.results.run import SUMMARY_FILE
from sim.results.store import SCENARIO_FILE
from sim.results.words import counted

_SCENARIO_KEYS = re.compile(r"^(model|pools|workload|router|kv_pool|run|slo|variants)\s*:", re.MULTILINE)
_TOPOLOGY_KEYS = re.compile(r"^(nodes|fabric)\s*:", re.MULTILINE)


def check_files(files: Iterable[Path]) -> int:
    """Check each file, tell all mistakes of all files, and return the exit code."""
    codes = [_check_file(file) for file in files]
    return max(codes, default=GOOD)


def _check_file(file: Path) -> int:
    try:
        doubts, variants = _doubts_of(file)
    except SimError as error:
        say(str(error))
        return error.exit_code
    except OSError as error:
        say(f"{file}: {error.strerror}")
        return YOUR_INPUT
    for doubt in doubts:
        say(f"! {doubt}")
    what = f"{file} and {counted(len(variants), 'variant')}" if variants else str(file)
    verdict = f"no mistakes, {counted(len(doubts), 'doubt')}" if doubts else "no mistakes"
    show([[("✓", "bold green"), (f" {what}: {verdict}", "")]], sys.stdout)
    return GOOD


def _doubts_of(file: Path) -> tuple[list[Advice], tuple[str, ...]]:
    """The doubts about a file, and the variants that were looked at too."""
    if file.is_dir():
        return _doubts_of(scenario_in(file))
    if is_topology(file):
        return sifted(checks.check_topology(file)), ()
    return sifted(findings_of(file)), variants_in(file)


def doubts_on(scenario: Scenario) -> list[Advice]:
    """Everything that looks odd about a scenario and its trace; mistakes are raised, all at once."""
    return sifted(checks.check(scenario))


def scenario_in(folder: Path) -> Path:
    """The scenario of a run folder."""
    if not (folder / SUMMARY_FILE).is_file():
        hint = "name a scenario file, or the folder of a saved run"
        raise ConfigError(str(folder), None, None, problem="a folder, but not of a run", hint=hint)
    return folder / SCENARIO_FILE


def is_topology(file: Path) -> bool:
    """Whether a file says how nodes are wired, not what is served: by the keys at its margin."""
    text = file.read_text(encoding="utf-8", errors="replace")
    return bool(_TOPOLOGY_KEYS.search(text)) and not _SCENARIO_KEYS.search(text)


def sifted(findings: Sequence[ConfigError | Advice]) -> list[Advice]:
    """The doubts among findings; mistakes are raised, all at once."""
    mistakes = [finding for finding in findings if isinstance(finding, ConfigError)]
    if mistakes:
        raise ConfigErrors(mistakes)
    return [finding for finding in findings if isinstance(finding, Advice)]


def shown_doubts(scenario: Scenario) -> None:
    """Check a scenario before it runs: mistakes are raised, doubts go to stderr."""
    for doubt in doubts_on(scenario):
        say(f"! {doubt}")
