"""What is wrong with a scenario file, in itself and in each of its variants, each thing said once.

What the file itself has in common with a variant is said of the file; what comes with variants only says with
which.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sim import api, checks
from sim.base.errors import Advice, ConfigError, ConfigErrors, listed
from sim.checks import Finding
from sim.config.load import variants_in
from sim.config.validation import ordered


def findings_of(file: Path) -> list[Finding]:
    """Mistakes, in the order of the file, and doubts. Raises ConfigErrors where the file cannot be read."""
    said: dict[str, tuple[Finding, list[str | None]]] = {}
    for variant in (None, *variants_in(file)):
        for finding in _findings_in(file, variant):
            said.setdefault(str(finding), (finding, []))[1].append(variant)
    found = [_told(finding, variants) for finding, variants in said.values()]
    files = list(dict.fromkeys(one.file for one in found if isinstance(one, ConfigError)))
    return sorted(found, key=lambda one: _place(one, files))


def _findings_in(file: Path, variant: str | None) -> Sequence[Finding]:
    """What is found in one variant; at each spot only the mistake that is found first."""
    try:
        findings = checks.check(api.load(file, variant=variant))
    except ConfigErrors as unreadable:
        return unreadable.errors
    return ordered(finding for finding in findings if isinstance(finding, ConfigError)) or findings


def _told(finding: Finding, variants: Sequence[str | None]) -> Finding:
    """A finding that tells with which variants it comes, unless the file has it without any."""
    names = [name for name in variants if name is not None]
    if len(names) < len(variants):
        return finding
    where = f" (variant{'s' if len(names) > 1 else ''} {listed(names)})"
    if isinstance(finding, Advice):
        return Advice(finding.text + where, finding.remedy)
    return ConfigError(
        finding.file,
        finding.line,
        finding.column,
        key=finding.key,
        problem=finding.problem + where,
        hint=finding.hint,
        excerpt=finding.excerpt,
    )


def _place(finding: Finding, files: Sequence[str]) -> tuple[int, int, int]:
    """Where a mistake stands; doubts keep their order behind."""
    if isinstance(finding, Advice):
        return len(files), 0, 0
    return files.index(finding.file), finding.line or 0, finding.column or 0
