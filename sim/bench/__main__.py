"""Measure the named cases, or all; print a table and write bench.json."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict

from sim.bench import flows, pool, replay
from sim.bench.figures import Figures, keep, table

NAMES: tuple[str, ...] = (*replay.CASES, *pool.CASES, *flows.CASES)


def main(arguments: list[str]) -> int:
    """Measure each case in a fresh process; `--here CASE` measures in this one."""
    if arguments[:1] == ["--here"]:
        name = arguments[1]
        case = next(module for module in (replay, pool, flows) if name in module.CASES)
        print(json.dumps(asdict(case.measure(name))))
        return 0
    names = arguments or list(NAMES)
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        print(f"unknown case '{unknown[0]}'; there are {', '.join(NAMES)}", file=sys.stderr)
        return 2
    entries = []
    for name in names:
        print(f"measuring {name} ...", file=sys.stderr)
        command = [sys.executable, "-m", "sim.bench", "--here", name]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        entries.append(Figures(**json.loads(done.stdout)))
        keep(entries[-1], NAMES)
    print(table(entries))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
