"""A JSON file of kernels and steps of one GPU, as a device form.

The file is what scripts of this project wrote before there was `sim calibrate`: `gemm` (m, n, k, `bf16_s`,
`fp8_s`), `copy` (bytes, `d2d_s`, `h2d_s`, `d2h_s`), `sdpa_cudnn_attention` (tokens, heads, `s`),
`prefill_8b_flash` (tokens, `s`), `decode_8b` (batch, context, `s`), `decode_ragged_8b` (contexts, `s`) and
`nvlink_p2p_copy_h200_pair` (bytes, `gb_per_s`); seconds, steps by the wall clock under `reference-h200`.
Any of these parts may be missing. Ignores: everything else in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from sim.base.errors import ConfigError
from sim.config.device import (
    Copy,
    DecodeStep,
    Device,
    Gemm,
    Hardware,
    Origin,
    PrefillAttention,
    PrefillStep,
    RaggedStep,
    Steps,
)

Direction = Literal["device-device", "host-device", "device-host"]
MODEL, ENGINE, PAGE_TOKENS = "llama-3.1-8b", "reference-h200", 64
DIRECTIONS: dict[str, Direction] = {"d2d_s": "device-device", "h2d_s": "host-device", "d2h_s": "device-host"}
HARDWARE = {"NVIDIA H200": "h200", "NVIDIA B200": "b200", "NVIDIA H100 80GB HBM3": "h100-sxm"}


def device_of_json(path: Path) -> Device:
    """Read such a file."""
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
        return _device(path.stem, given)
    except json.JSONDecodeError as error:
        hint = "give a device file of sim calibrate, or JSON of kernels and steps"
        raise ConfigError(str(path), error.lineno, error.colno, problem=error.msg, hint=hint) from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        problem = f"does not have the parts of kernels and steps: {error}"
        hint = "see sim/validate/kernelfile.py for the keys"
        raise ConfigError(str(path), None, None, problem=problem, hint=hint) from None


def _device(stem: str, given: dict[str, Any]) -> Device:
    gpu = str(given.get("device", "NVIDIA H200"))
    name = "".join(letter if letter.isalnum() else "-" for letter in stem)
    return Device(
        sim=1,
        name=name if name[:1].isalpha() else f"file-{name}",
        hardware=Hardware(catalogue=HARDWARE.get(gpu), gpu=gpu),
        origin=Origin(
            date="not stated",
            command="not stated",
            software={"torch": str(given.get("torch", "not stated"))},
            source=f"file {stem}",
            licence="not stated",
        ),
        gemm=list(_products(given)),
        attention_prefill=[_attention(row) for row in given.get("sdpa_cudnn_attention", [])],
        copies=list(_copies(given)),
        steps=_steps(given),
    )


def _products(given: dict[str, Any]) -> Iterator[Gemm]:
    for row in given.get("gemm", []):
        for precision in ("bf16", "fp8"):
            seconds = row.get(f"{precision}_s")
            if seconds is not None:
                shape = {key: row[key] for key in ("m", "n", "k")}
                yield Gemm(**shape, precision=precision, median_us=seconds * 1e6)


def _attention(row: dict[str, Any]) -> PrefillAttention:
    return PrefillAttention(
        kernel="cudnn",
        heads=row["heads"],
        kv_heads=row["kv_heads"],
        head_dim=row["head_dim"],
        new=row["tokens"],
        median_us=row["s"] * 1e6,
    )


def _copies(given: dict[str, Any]) -> Iterator[Copy]:
    for row in given.get("copy", []):
        for key, direction in DIRECTIONS.items():
            if row.get(key) is not None:
                yield Copy(direction=direction, bytes=row["bytes"], median_us=row[key] * 1e6)
    for row in given.get("nvlink_p2p_copy_h200_pair", []):
        seconds = row["bytes"] / (row["gb_per_s"] * 1e9)
        yield Copy(direction="device-peer", bytes=row["bytes"], median_us=seconds * 1e6)


def _steps(given: dict[str, Any]) -> list[Steps]:
    prefill = [
        PrefillStep(new=row["tokens"], median_us=row["s"] * 1e6) for row in given.get("prefill_8b_flash", [])
    ]
    decode = [
        DecodeStep(batch=row["batch"], context=row["context"], median_us=row["s"] * 1e6)
        for row in given.get("decode_8b", [])
    ]
    ragged = [
        RaggedStep(contexts=row["contexts"], median_us=row["s"] * 1e6)
        for row in given.get("decode_ragged_8b", [])
    ]
    if not (prefill or decode or ragged):
        return []
    made = Steps(
        name="llama-3-1-8b-bf16",
        model=MODEL,
        weights="bf16",
        kv="bf16",
        clock="wall",
        engine=ENGINE,
        page_tokens=PAGE_TOKENS,
        attention="FlashAttention 2 for prompts, a paged kernel for decode steps",
        prefill=prefill,
        decode=decode,
        ragged=ragged,
    )
    return [made]
