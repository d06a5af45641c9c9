"""How fast the simulator is: `python -m sim.bench [CASE]`, or `make bench [CASE=name]`.

Each case runs in a process of its own. `cpu_s` is the replay: loading, generating the requests and
filling the caches come before. So that figures from different machines can be compared, bare SimPy
time-outs (one process that waits a million times) are measured in the same process, before and after.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import simpy

from sim.api import Silent, Simulation, load
from sim.resolve import resolve
from sim.tables.recorder import MemorySink, Recorder

FILE = Path("bench.json")
SCENARIOS = Path(__file__).parent.parent / "scenarios"
FLAGSHIP = SCENARIOS / "bench-flagship.yaml"
CASES: dict[str, tuple[Path, str | None]] = {
    "flagship": (FLAGSHIP, None),
    "mooncake": (SCENARIOS / "mooncake-b200-4000.yaml", None),
    "replicas-8": (FLAGSHIP, "replicas-8"),
    "replicas-64": (FLAGSHIP, "replicas-64"),
    "replicas-500": (FLAGSHIP, "replicas-500"),
}
TIMEOUTS = 1_000_000


@dataclass(frozen=True, slots=True)
class Figures:
    """One entry of bench.json."""

    name: str
    requests: int
    cpu_s: float
    requests_per_cpu_s: float
    events_per_request: float
    peak_rss_bytes: int
    simpy_events_per_cpu_s: float

    @property
    def scaled(self) -> float:
        """Requests per CPU-second where bare SimPy does a million time-outs per CPU-second."""
        return self.requests_per_cpu_s / self.simpy_events_per_cpu_s * 1e6


def measure(name: str) -> Figures:
    """Replay a case in this process."""
    path, variant = CASES[name]
    simulation = Simulation(resolve(load(path, variant=variant)), Recorder(MemorySink()))
    before = simpy_events_per_cpu_s()
    outcome = simulation.play(Silent(), ahead=True)
    requests = simulation.serving.arrived
    peak_rss_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    simpy_rate = (before + simpy_events_per_cpu_s()) / 2
    return Figures(
        name=name,
        requests=requests,
        cpu_s=outcome.cpu_s,
        requests_per_cpu_s=requests / outcome.cpu_s,
        events_per_request=outcome.events / requests,
        peak_rss_bytes=peak_rss_bytes,
        simpy_events_per_cpu_s=simpy_rate,
    )


def simpy_events_per_cpu_s() -> float:
    """Bare SimPy: one process that waits for one time-out after the other."""
    env = simpy.Environment()

    def waiter() -> simpy.events.ProcessGenerator:
        for _ in range(TIMEOUTS):
            yield env.timeout(1)

    env.process(waiter())
    started = time.process_time()
    env.run()
    return TIMEOUTS / (time.process_time() - started)


def keep(figures: Figures, file: Path = FILE) -> None:
    """Write an entry to bench.json, in place of the one of the same name; the others stay."""
    entries = json.loads(file.read_text()) if file.exists() else []
    others = [entry for entry in entries if entry["name"] != figures.name]
    order = list(CASES)
    entries = sorted([*others, asdict(figures)], key=lambda entry: order.index(entry["name"]))
    file.write_text(json.dumps(entries, indent=2) + "\n")


def table(entries: list[Figures]) -> str:
    """The entries for people."""
    head = f"{'case':<14}{'requests':>10}{'cpu s':>8}{'req/cpu-s':>11}{'scaled':>9}{'events/req':>12}{'peak MB':>9}"
    rows = [
        f"{each.name:<14}{each.requests:>10,}{each.cpu_s:>8.2f}{each.requests_per_cpu_s:>11,.0f}"
        f"{each.scaled:>9,.0f}{each.events_per_request:>12.2f}{each.peak_rss_bytes / 1e6:>9,.0f}"
        for each in entries
    ]
    note = "scaled: where bare SimPy does 1 M time-outs per CPU-second"
    return "\n".join([head, *rows, note])


def main(arguments: list[str]) -> int:
    """Measure the named cases, or all, each in a fresh process; print a table and write bench.json."""
    if arguments[:1] == ["--here"]:
        print(json.dumps(asdict(measure(arguments[1]))))
        return 0
    names = arguments or list(CASES)
    unknown = [name for name in names if name not in CASES]
    if unknown:
        print(f"unknown case '{unknown[0]}'; there are {', '.join(CASES)}", file=sys.stderr)
        return 2
    entries = []
    for name in names:
        print(f"measuring {name} ...", file=sys.stderr)
        command = [sys.executable, "-m", "sim.bench", "--here", name]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        entries.append(Figures(**json.loads(done.stdout)))
        keep(entries[-1])
    print(table(entries))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
