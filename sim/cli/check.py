"""`sim check`: what can be said about files without simulating."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from sim import checks
from sim.base.errors import Advice, ConfigError, ConfigErrors, SimError
from sim.cli.files import SCENARIO_FOLDERS, must_exist, scenario_in
from sim.cli.listing import TOPOLOGY_FOLDERS
from sim.cli.trouble import GOOD, explain, say
from sim.cli.variants import findings_of
from sim.config.filekind import is_topology
from sim.config.load import variants_in
from sim.config.scenario import Scenario
from sim.report.text import show
from sim.results.words import counted


def check_files(files: Iterable[Path]) -> int:
    """Check each file, tell all mistakes of all files, and return the exit code."""
    codes = [_check_file(file) for file in files]
    return max(codes, default=GOOD)


def _check_file(file: Path) -> int:
    try:
        doubts, variants = _doubts_of(file)
    except (SimError, OSError) as error:
        return explain(error)
    for doubt in doubts:
        say(f"! {doubt}")
    what = f"{file} and {counted(len(variants), 'variant')}" if variants else str(file)
    verdict = f"no mistakes, {counted(len(doubts), 'doubt')}" if doubts else "no mistakes"
    show([[("✓", "bold green"), (f" {what}: {verdict}", "")]], sys.stdout)
    return GOOD


def _doubts_of(file: Path) -> tuple[list[Advice], tuple[str, ...]]:
    """The doubts about a file, and the variants that were looked at too."""
    must_exist(file, (*SCENARIO_FOLDERS, *TOPOLOGY_FOLDERS))
    if file.is_dir():
        return _doubts_of(scenario_in(file))
    if is_topology(file):
        return sifted(checks.check_topology(file)), ()
    return sifted(findings_of(file)), variants_in(file)


def doubts_on(scenario: Scenario) -> list[Advice]:
    """Everything that looks odd about a scenario and its trace; mistakes are raised, all at once."""
    return sifted(checks.check(scenario))


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
