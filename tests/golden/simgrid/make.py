"""Play the golden cases in SimGrid and store when each flow ends. See README.md."""

import json
import subprocess
import sys
from datetime import date
from pathlib import Path

from families import Case, cases

STORED = Path(__file__).with_name("cases.json")
CONFIGURATION = (
    "network/model:CM02",
    "network/TCP-gamma:0",
    "network/crosstraffic:0",
    "maxmin/precision:1e-15",
    "surf/precision:1e-15",
)
SCHEMA = {
    "capacities": "of the links, bytes per second",
    "flows": "[start in seconds, bytes, link numbers, own cap in bytes per second or 0]",
    "ends": "when SimGrid ended each flow, in seconds (shortest text that is the same float)",
}


def play(case: Case, optim: str) -> tuple[str, list[float]]:
    """SimGrid's version, and the end of each flow; only once in a process, which SimGrid requires."""
    import simgrid  # noqa: PLC0415 - only in the children

    settings = [f"--cfg={text}" for text in (*CONFIGURATION, f"network/optim:{optim}")]
    engine = simgrid.Engine(["golden", "--log=root.thres:error", *settings])
    zone = simgrid.NetZone.create_full_zone("zone")
    links = [zone.create_link(f"link {i}", float(rate)) for i, rate in enumerate(case.capacities)]
    for link in links:
        link.set_latency(0)
        link.seal()
    hosts = []
    for i, (_, _, path, _) in enumerate(case.flows):
        pair = [zone.create_host(f"{end} {i}", 1e9) for end in ("source", "target")]
        route = [simgrid.LinkInRoute(links[number]) for number in path]
        zone.add_route(pair[0].netpoint, pair[1].netpoint, None, None, route, False)
        hosts.append(pair)
    zone.seal()
    ends = [-1.0] * len(case.flows)

    def send(i: int) -> None:
        start, size, _, cap = case.flows[i]
        simgrid.this_actor.sleep_for(start)
        transfer = simgrid.Mailbox.by_name(f"{i}").put_init("bytes", size)
        if cap:
            transfer.set_rate(cap)
        transfer.start()
        transfer.wait()
        ends[i] = simgrid.Engine.clock

    def receive(i: int) -> None:
        simgrid.Mailbox.by_name(f"{i}").get()

    for i, (source, target) in enumerate(hosts):
        simgrid.Actor.create(f"send {i}", source, send, i)
        simgrid.Actor.create(f"receive {i}", target, receive, i)
    engine.run()
    return simgrid.simgrid_version, ends


def stored(case: Case, ends: list[float]) -> str:
    parts = {"name": case.name, "capacities": case.capacities, "flows": case.flows, "ends": ends}
    return json.dumps(parts, separators=(",", ":"))


def played_apart(case: Case, optim: str) -> tuple[str, list[float]]:
    """The same, in a process of its own."""
    command = [sys.executable, __file__, case.name, optim]
    done = subprocess.run(command, check=True, timeout=60, capture_output=True, text=True)
    return tuple(json.loads(done.stdout))


def main() -> None:
    """Play all cases twice, by SimGrid's two ways to update, and store the ends of its default way."""
    every = cases()
    lazy, full = ([played_apart(case, optim) for case in every] for optim in ("Lazy", "Full"))
    differences = [
        abs(one - other) / one
        for (_, ends), (_, others) in zip(lazy, full, strict=True)
        for one, other in zip(ends, others, strict=True)
    ]
    provenance = {
        "made_by": "tests/golden/simgrid/make.py",
        "made_on": date.today().isoformat(),
        "simgrid": lazy[0][0],
        "package": "Debian 12 python3-simgrid",
        "configuration": [*CONFIGURATION, "network/optim:Lazy"],
        "lazy_against_full_relative": max(differences),
        **SCHEMA,
    }
    lines = ",\n".join(stored(case, ends) for case, (_, ends) in zip(every, lazy, strict=True))
    head = json.dumps(provenance, indent=1)
    STORED.write_text(f'{{"provenance": {head},\n"cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    if sys.argv[1:]:
        print(json.dumps(play(next(case for case in cases() if case.name == sys.argv[1]), sys.argv[2])))
    else:
        main()
