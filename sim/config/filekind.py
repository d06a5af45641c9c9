"""Which kind of file a user has named: told by the keys at its margin, whatever else is wrong with it."""

from __future__ import annotations

import re
from pathlib import Path

_SCENARIO_KEYS = re.compile(r"^(model|pools|workload|router|run|slo|variants)\s*:", re.MULTILINE)
_TOPOLOGY_KEYS = re.compile(r"^(nodes|fabric)\s*:", re.MULTILINE)


def is_topology(file: Path) -> bool:
    """Whether a file says how nodes are wired, not what is served."""
    return _says(file, _TOPOLOGY_KEYS, _SCENARIO_KEYS)


def is_scenario(file: Path) -> bool:
    """Whether a file says what is served, not how nodes are wired."""
    return _says(file, _SCENARIO_KEYS, _TOPOLOGY_KEYS)


def _says(file: Path, these: re.Pattern[str], not_those: re.Pattern[str]) -> bool:
    """Whether a file has some keys and not others; one that cannot be read says nothing."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return bool(these.search(text)) and not not_those.search(text)
