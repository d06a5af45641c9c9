"""A topology in words: its tree, its figures, the way between two places, and how two differ.

Each screen is made of the same plain figures that `--json` writes. Rates are per direction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from sim.base.units import show as shown
from sim.report.text import WIDTH, Line
from sim.results.words import NOTHING, TIERS, aligned, counted, number, percent, size, whole

Figures = Mapping[str, Any]
FACTS_FROM = 34
"""The column at which the facts of a part of the tree begin."""
FACT_WIDTH = 33
"""The columns that the title and the value of a fact take."""
NO_BREAK = "\N{NO-BREAK SPACE}"


def tree_screen(figures: Figures) -> list[Line]:
    """The parts of a topology as a tree, with its description and sources."""
    lines = [*_head(figures), *_prose(figures["description"]), []]
    for part in figures["parts"]:
        lines.extend(_branch(part, "", "", ""))
    placement = figures.get("placement")
    if placement is not None:
        lines.extend(_placement(placement))
    return [*lines, [], *_sources(figures["source"])]


def stats_screen(figures: Figures) -> list[Line]:
    """The figures of a topology."""
    lines = _head(figures)
    if figures["fabric"] is not None:
        lines += [[], *_tiers(figures["fabric"]), [], *_cables(figures["fabric"]), []]
        lines += [*_reach(figures["fabric"]), *_hops(figures["fabric"])]
    return [*lines, [], *_domains(figures)]


def path_screen(figures: Figures) -> list[Line]:
    """The way between two places, link by link."""
    rows = [[_named(link), _made_of(link), shown(link["bytes_per_s"], "rate")] for link in figures["links"]]
    lines: list[Line] = [
        [(f"{figures['source']} → {figures['target']}", "bold"), (f"   {figures['way']}", "dim")],
        [],
        *([(f"  {row.rstrip()}", "")] for row in aligned(rows, left=2)),
        [],
    ]
    equal = "below it latency weighs more, above it bandwidth"
    return [
        *lines,
        *_facts("latency", shown(figures["latency_ps"], "time"), _joined(_delays(figures["latency"]))),
        *_facts(
            "bandwidth",
            shown(figures["bytes_per_s"], "rate"),
            f"alone, held back by {figures['held_back_by']}",
        ),
        _fact("equal at", shown(figures["equal_bytes"], "size"), equal),
    ]


def _delays(latency: Figures) -> Iterator[str]:
    """What a latency is made of."""
    yield f"{shown(latency['ends_ps'], 'time')} at the ends"
    if latency["switches"]:
        yield f"{shown(latency['switches_ps'], 'time')} in {_switches(latency['switches'])}"
    if latency["inside_ps"]:
        yield f"{shown(latency['inside_ps'], 'time')} over {latency['inside']}"
    if latency["host_ps"]:
        yield f"{shown(latency['host_ps'], 'time')} in and out of host memory"
    if latency["fibre_m"]:
        yield f"{shown(latency['fibre_ps'], 'time')} in {shown(latency['fibre_m'], 'length')} of fibre"


def _joined(parts: Iterable[str]) -> str:
    """Parts of a text that may be broken between them only."""
    return ", ".join(part.replace(" ", NO_BREAK) for part in parts)


def _named(link: Figures) -> str:
    """A link by name, and how many there are of its like."""
    return f"{link['name']} and {link['links'] - 1} more" if link["links"] > 1 else str(link["name"])


def _made_of(link: Figures) -> str:
    """The cables of a link, and whether bytes cross it more than once."""
    cables = f"{link['link']} ×{link['cables']}" if link["link"] else ""
    return cables if link["times"] == 1 else f"{cables} in and out".strip()


def diff_screen(figures: Figures) -> list[Line]:
    """What differs between two topologies: keys of their files, then figures."""
    one, other = figures["names"]
    lines: list[Line] = [[(f"{one} → {other}", "bold")]]
    for title, differences in (("keys", figures["keys"]), ("figures", figures["figures"])):
        rows = [[f"  {key}", before, "→ " + after] for key, (before, after) in differences.items()]
        lines += [[], [(title if rows else f"{title}: no difference", "dim")]]
        if rows:
            lines += [[(row.rstrip(), "")] for row in aligned(rows, left=3)]
    return lines


def facts(figures: Figures) -> dict[str, str]:
    """All figures of a topology by title, as they are shown."""
    found = {"nodes": whole(figures["nodes"]), "GPUs": whole(figures["gpus"])}
    for i, domain in enumerate(figures["domains"]):
        which = f" ({i + 1})" if len(figures["domains"]) > 1 else ""
        found[f"NVLink domains{which}"] = whole(domain["count"]) if domain["has_nvlink"] else NOTHING
        found[f"GPUs that share a domain{which}"] = whole(domain["gpus"])
        found[f"link between them{which}"] = f"{domain['link']}, {shown(domain['bytes_per_s'], 'rate')}"
    fabric = figures["fabric"]
    if fabric is None:
        return found
    found |= {"NICs": whole(fabric["nics"]), "units": whole(fabric["units"]), "pods": whole(fabric["pods"])}
    found |= {"switches": whole(fabric["switches"]), "cables": whole(fabric["cables"])}
    found["link"] = f"{fabric['link']}, {shown(fabric['link_bytes_per_s'], 'rate')}"
    for tier in fabric["tiers"]:
        name = tier["tier"]
        found[f"{name} switches"] = whole(tier["switches"])
        found[f"{name} ports used"] = f"{whole(tier['ports_used'])} of {whole(tier['radix'])}"
        found[f"{name} oversubscription"] = ratio(tier["oversubscription"])
    for part in fabric["cabling"]:
        found[f"{part['lower']}-{part['upper']} cables"] = whole(part["count"])
    found["bisection bandwidth"] = shown(fabric["bisection_bytes_per_s"], "rate")
    found["bisection fraction"] = percent(fabric["bisection_fraction"])
    found["diameter"] = _switches(fabric["diameter_switches"])
    for hop in fabric["hops"]:
        found[f"pairs {_distance(hop['switches'])}"] = percent(hop["fraction"])
        found[f"latency {_distance(hop['switches'])}"] = shown(hop["latency_ps"], "time")
    return found


def ratio(oversubscription: float | None) -> str:
    """Cables down over cables up: `none`, or `2 : 1`."""
    if oversubscription is None:
        return NOTHING
    return "none" if oversubscription <= 1 else f"{number(oversubscription).rstrip('0').rstrip('.')} : 1"


def _head(figures: Figures) -> list[Line]:
    counts = [counted(figures["nodes"], "node"), counted(figures["gpus"], "GPU")]
    fabric = figures["fabric"]
    if fabric is not None:
        counts.append(_switches(fabric["switches"]))
    right = " · ".join(counts)
    space = max(WIDTH - len(figures["name"]) - len(right), 2)
    lines: list[Line] = [[(figures["name"], "bold"), (" " * space, ""), (right, "dim")]]
    if fabric is None:
        return [*lines, [("  no fabric: the nodes are not connected", "")]]
    rails = f", {counted(fabric['rails'], 'rail')}"
    link = f", {fabric['link']} {shown(fabric['link_bytes_per_s'], 'rate')}"
    routing = f", {fabric['routing']}" if fabric["switches"] else ""
    return [*lines, [(f"  {fabric['kind']}{rails}{link}{routing}", "")]]


def _prose(text: str) -> Iterator[Line]:
    for part in wrap(text, WIDTH - 2):
        yield [(f"  {part}", "dim")]


def _sources(sources: Sequence[str]) -> Iterator[Line]:
    for source in sources:
        for i, part in enumerate(wrap(source, WIDTH - 8, break_long_words=False)):
            yield [(("source  " if i == 0 else "        ") + part, "dim")]


def _branch(part: Figures, margin: str, elbow: str, below: str) -> Iterator[Line]:
    """A part and what is in it; `elbow` leads to it, `below` stands under the elbow."""
    title = _title(part)
    space = max(FACTS_FROM - len(margin + elbow + title), 2)
    yield [
        (margin + elbow, "dim"),
        (title, "bold" if part["parts"] else ""),
        (" " * space + _about(part), "dim"),
    ]
    inner = part["parts"]
    for i, each in enumerate(inner):
        is_last = i == len(inner) - 1
        yield from _branch(each, margin + below, "└─ " if is_last else "├─ ", "   " if is_last else "│  ")


def _title(part: Figures) -> str:
    name = part["group"] if part["kind"] == "node" else part["kind"]
    name = "NVLink domain" if name == "domain" else name
    if part["count"] > 1:
        return f"{name} ×{whole(part['count'])}"
    return f"{name} {part['first']}" if part["kind"] in {"pod", "unit"} else name


def _about(part: Figures) -> str:
    if part["kind"] in {"leaf", "spine", "core"}:
        ways = [f"{whole(part[way])} {way}" for way in ("down", "up") if part[way]]
        rails = f" · {counted(part['rails'], 'rail')} each" if part["rails"] and part["count"] > 1 else ""
        return f"{whole(part['radix'])} ports: {', '.join(ways)}{rails}"
    if part["kind"] == "node":
        nics = f", {counted(part['nics'], 'NIC')}" if part["nics"] else ""
        lent = [
            f"{size(part[key])} {TIERS[tier]}"
            for tier, key in (("dram", "dram_bytes"), ("nvme", "nvme_bytes"))
            if part[key]
        ]
        lends = f", lends {', '.join(lent)}" if lent else ""
        return f"{part['type']}: {counted(part['gpus'], 'GPU')}{nics}{lends}"
    return f"{counted(part['gpus'], 'GPU')}" if part["kind"] == "domain" else ""


def _placement(placement: Figures) -> Iterator[Line]:
    yield []
    yield [(f"placement of {placement['scenario']}", "bold")]
    rows = [
        [
            f"  {pool['name']}",
            counted(pool["replicas"], "replica"),
            f"of {counted(pool['gpus'], 'GPU')}"
            + (f" on {pool['nodes_each']} nodes" if pool["nodes_each"] > 1 else ""),
            pool["place"],
            f"on {'node' if pool['nodes'].isdigit() else 'nodes'} {pool['nodes']}",
        ]
        for pool in placement["pools"]
    ]
    yield from ([(line.rstrip(), "")] for line in aligned(rows, left=5))
    for pool in placement["pools"]:
        if pool["domains_each"] > 1:
            text = f"  a replica of {pool['name']} is in {pool['domains_each']} NVLink domains"
            yield [(f"{text}: collectives cross its NICs", "")]
    rows = [[f"  {unit['units']}", unit["holds"]] for unit in placement["units"]]
    yield from ([(line.rstrip(), "dim")] for line in aligned(rows, left=2))


def _tiers(fabric: Figures) -> Iterator[Line]:
    if not fabric["tiers"]:
        yield [("  no switches", "")]
        return
    rows = [["tier", "switches", "ports", "used", "free", "cables down", "up", "oversubscription"]]
    for tier in fabric["tiers"]:
        keys = ("switches", "radix", "ports_used", "ports_free", "down_cables", "up_cables")
        rows.append([tier["tier"], *(whole(tier[key]) for key in keys), ratio(tier["oversubscription"])])
    for i, line in enumerate(aligned(rows, left=1)):
        yield [(f"  {line.rstrip()}", "dim" if i == 0 else "")]


def _cables(fabric: Figures) -> Iterator[Line]:
    rows = [["cables", "count", "longest"]]
    for part in fabric["cabling"]:
        length = shown(part["length_m"], "length") if part["length_m"] else NOTHING
        rows.append([f"{part['lower']} to {part['upper']}", whole(part["count"]), length])
    for i, line in enumerate(aligned(rows, left=1)):
        yield [(f"  {line.rstrip()}", "dim" if i == 0 else "")]


def _reach(fabric: Figures) -> Iterator[Line]:
    cut = fabric["bisection_bytes_per_s"]
    share = f"{percent(fabric['bisection_fraction'])} of what half of the NICs send"
    yield _fact("bisection", shown(cut, "rate"), share)
    if fabric["diameter_switches"] is not None:
        yield _fact("diameter", _switches(fabric["diameter_switches"]), "between the nodes farthest apart")


def _hops(fabric: Figures) -> Iterator[Line]:
    for hop in fabric["hops"]:
        distance = _distance(hop["switches"])
        yield _fact(
            distance, percent(hop["fraction"]), f"of all pairs of nodes, {shown(hop['latency_ps'], 'time')}"
        )


def _domains(figures: Figures) -> Iterator[Line]:
    for domain in figures["domains"]:
        yield [(f"  {_domain(domain)}", "")]


def _domain(domain: Figures) -> str:
    nodes = "" if domain["nodes"] == 1 else f" in {counted(domain['nodes'], 'node')}"
    rate = f"{domain['link']}, {shown(domain['bytes_per_s'], 'rate')} a GPU"
    if not domain["has_nvlink"]:
        return (
            f"{counted(domain['count'], 'node')} of {counted(domain['gpus'], 'GPU')} without NVLink: {rate}"
        )
    return f"{counted(domain['count'], 'NVLink domain')} of {counted(domain['gpus'], 'GPU')}{nodes}: {rate}"


def _distance(switches: int | None) -> str:
    if not switches:
        return "over NVLink" if switches is None else "NIC to NIC"
    return f"over {_switches(switches)}"


def _switches(count: int | None) -> str:
    return NOTHING if count is None else "1 switch" if count == 1 else f"{whole(count)} switches"


def _facts(title: str, value: str, about: str) -> Iterator[Line]:
    """A fact whose explanation may take several lines; what is joined by no-break spaces stays together."""
    first, *more = (line.replace(NO_BREAK, " ") for line in wrap(about, WIDTH - FACT_WIDTH))
    yield _fact(title, value, first)
    for line in more:
        yield [(" " * FACT_WIDTH + line, "dim")]


def _fact(title: str, value: str, about: str) -> Line:
    return [(f"  {title:<17} {value:>10}   ", ""), (about, "dim")]
