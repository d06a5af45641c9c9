"""Known public traces, where copies of them are found, and how they are fetched.

A trace is written in a scenario as a path or as a name. A name is looked for in the folder
$SIM_TRACES (plain or with .gz), then in the download cache. Downloads are checked against the
pinned hash of the raw file; copies in $SIM_TRACES are checked by `sim trace info`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from sim.base.errors import did_you_mean
from sim.workload.errors import TraceError
from sim.workload.source import TraceFile

ENV = "SIM_TRACES"


@dataclass(frozen=True, slots=True)
class KnownTrace:
    """A public trace: where it comes from, the hash of its raw bytes, how it is read."""

    name: str
    about: str
    url: str
    sha256: str
    files: tuple[str, ...]
    format: str
    licence: str
    source: str
    block_tokens: int = 512


@cache
def known_traces() -> dict[str, KnownTrace]:
    """Return the traces that can be fetched, by name."""
    import yaml  # noqa: PLC0415  not needed where a path is given

    text = (files("sim.workload") / "traces.yaml").read_text("utf-8")
    entries = [entry | {"files": tuple(entry["files"])} for entry in yaml.safe_load(text)]
    return {entry["name"]: KnownTrace(**entry) for entry in entries}


def find_trace(wanted: str) -> Path:
    """Return the file of a path or name; where it is neither, say what there is."""
    if Path(wanted).exists():
        return Path(wanted)
    name = Path(wanted).name
    for path in _places(name):
        if path.is_file():
            return path
    known = known_traces()
    if name in known:
        raise TraceError(
            name,
            None,
            "this trace is not on this machine",
            f"run `sim trace get {name}`, or set ${ENV} to its folder",
        )
    raise TraceError(wanted, None, "no such trace", f"give a path, or a name: {did_you_mean(name, known)}")


def known_as(path: Path) -> KnownTrace | None:
    """Return the known trace that a file claims, by its name, to be."""
    plain = path.name.removesuffix(".gz")
    return next((trace for trace in known_traces().values() if plain in trace.files), None)


def raw_sha256(path: Path) -> str:
    """Return the hash of the unpacked bytes of a file."""
    digest = hashlib.sha256()
    with TraceFile(path).open() as raw:
        while block := raw.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def fetch(name: str, downloader: Callable[..., Any] | None = None) -> Path:
    """Download a known trace into the cache, unless it is there, and return its path.

    `downloader` is a pooch downloader; None takes the one for the protocol.
    """
    import pooch  # noqa: PLC0415  slow to import, and only downloads need it

    known = known_traces()
    if name not in known:
        raise TraceError(name, None, "no trace of this name", did_you_mean(name, known))
    trace = known[name]
    try:
        return Path(
            pooch.retrieve(
                trace.url,
                f"sha256:{trace.sha256}",
                fname=trace.files[0],
                path=cache_folder(),
                downloader=downloader,
            )
        )
    except Exception as failure:  # whatever the transport raises, the user needs one answer
        reason = str(failure).strip().partition("\n")[0] or type(failure).__name__
        raise TraceError(
            name,
            None,
            f"cannot download {trace.url}: {reason}",
            f"check the network, or put {trace.files[0]} into a folder and set ${ENV} to it",
        ) from failure


def cache_folder() -> Path:
    """Return the folder into which traces are downloaded."""
    import pooch  # noqa: PLC0415

    return Path(pooch.os_cache("kvfabric"))


def _places(name: str) -> Iterator[Path]:
    """Yield the files that a name may stand for, the likeliest first."""
    trace = known_traces().get(name)
    names = [name, *(trace.files if trace else ())]
    folder = os.environ.get(ENV)
    for base in ([Path(folder)] if folder else []) + [cache_folder()]:
        for each in names:
            yield base / each
            yield base / f"{each}.gz"
