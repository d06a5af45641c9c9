"""Screens of the catalogue's parts, word for word, from figures made by hand."""

from textwrap import dedent

import pytest

from sim.report.parts import amount, difference_screen, gpu_table, part_screen, title_of
from sim.report.text import plain

FACTS = [
    ["memory", 180 * 2**30, "memory"],
    ["bandwidth", 7.7e12, "rate"],
    ["dense BF16", 2250e12, "compute"],
    ["dense FP8", None, "compute"],
    ["NVLink", None, "rate"],
    ["power", 1000.0, "power"],
    ["price", 5.5, "price"],
]
OUTLOOK = {"prefill_ps": 4 * 10**11, "step_ps": 6 * 10**9, "batch_step_ps": 12 * 10**9}
OUTLOOK |= {"kv_tokens": 100_000, "missing_bytes": None}
FASTER = {"prefill_ps": 10**11, "step_ps": 4 * 10**9, "batch_step_ps": 6 * 10**9}
FASTER |= {"kv_tokens": 150_000, "missing_bytes": None}
LACKING = dict.fromkeys(OUTLOOK) | {"missing_bytes": 10**9}


def told(lines):
    return "\n".join(plain(line) for line in lines)


def said(text):
    return dedent(text).strip("\n")


def leaf(key, value, **more):
    return {"key": key, "value": value, "source": "s", "verified": "primary"} | {
        "derived": None,
        "note": None,
        **more,
    }


def difference(before=OUTLOOK, after=FASTER):
    block = {"weights": "FP8", "before": before, "after": after}
    return {
        "names": ["old", "new"],
        "titles": ["Old", "New"],
        "facts": [
            {"what": "power", "dimension": "power", "before": 100.0, "after": 150.0, "ratio": 1.5},
            {"what": "dense FP4", "dimension": "compute", "before": None, "after": 9e15, "ratio": None},
            {"what": "NVLink", "dimension": "rate", "before": 9e11, "after": None, "ratio": None},
        ],
        "model": "m",
        "serving": [block | {"prompt_tokens": 8192, "context_tokens": 4096, "batch": 32}],
    }


def test_the_table_of_gpus():
    screen = told(gpu_table([{"name": "b200", "facts": FACTS, "not_read": ["tdp"]}])).replace("\u202f", " ")
    assert screen == said("""
        #    memory   rate    BF16     FP8     FP4  NVLink  power  price
        #       GiB   GB/s  TFLOPS  TFLOPS  TFLOPS    GB/s      W  USD/h
        b200    180  7 700   2 250       –       –       –  1 000*  5.50

        dense, FP32 accumulation; NVLink a direction; BF16 is FP16 on the T4
        * from memory or assumed    sim show gpu NAME   has every source
    """).replace("#", " ")


def test_a_part_with_its_sources():
    figures = {
        "kind": "gpu",
        "name": "b200",
        "title": "B200",
        "predecessor": "h200",
        "values": [
            leaf("memory_bandwidth", "7700 GB/s", derived="7,680 bits x 3,996 MHz", note="not 8 TB/s"),
            leaf("dense.fp8", "4500 TFLOPS", source="memory", verified="memory"),
        ],
        "follows": [["GEMMs FP8", 2.5e15, "compute"], ["reading KV", 7e12, "rate"]],
        "nodes": ["dgx"],
        "sources": [{"name": "s", "title": "A text", "date": "2025", "url": "https://a.b/c"}],
    }
    assert told(part_screen(figures)) == said("""
        b200: B200   after h200

          bandwidth         7700 GB/s       [primary: s]
                              7,680 bits x 3,996 MHz
                              not 8 TB/s
          dense FP8         4500 TFLOPS     [memory]

        kernels of its architecture reach
          GEMMs FP8   2.5 PFLOPS
          reading KV      7 TB/s

          in nodes          dgx

        sources
          s                   A text, 2025
                              https://a.b/c
    """)


def test_a_link_with_its_measured_times():
    figures = {
        "kind": "link",
        "name": "nvl",
        "title": "NVLink",
        "predecessor": None,
        "values": [leaf("latency", "1 us"), leaf("all_reduce.0.small", "8 KiB = 4 us", note="as measured")],
        "follows": [],
        "all_reduce": {2: [[8192, 4_000_000], [2**21, 9_000_000]], 4: [[8192, 5_000_000]]},
        "sources": [],
    }
    assert told(part_screen(figures)) == said("""
        nvl: NVLink

          latency           1 us            [primary: s]

          all-reduce  2 GPUs   4 GPUs
          8 KiB         4 us     5 us
          2 MiB         9 us        –
            primary: s, as measured

        sources
    """)


def test_a_difference_and_what_it_does():
    assert told(difference_screen(difference())).replace("\u202f", " ") == said("""
        old → new
          Old → New

                          old        new
          power         100 W      150 W   ×1.50
          dense FP4         –   9 PFLOPS     new
          NVLink     900 GB/s          –    gone

        m in FP8 on one GPU, by the roofline
                                  old       new
          prefill of 8 192     400 ms    100 ms   ×4.00 as fast
          decode, 1 x 4 096      6 ms      4 ms   ×1.50 as fast
          decode, 32 x 4 096    12 ms      6 ms   ×2.00 as fast
          KV a GPU, tokens    100 000   150 000           ×1.50

        In words: new prefills 4.00 times as fast, gives tokens to 32 at once 2.00 times
        as fast, and holds 1.50 times the KV (FP8).
    """)


def test_what_does_not_fit_is_told_and_not_compared():
    screen = told(difference_screen(difference(before=LACKING)))
    assert screen.endswith("  the weights do not fit old: 1 GB missing")
    assert "as fast" not in screen
    assert "In words" not in screen


def test_one_sequence_where_a_batch_does_not_fit():
    screen = told(difference_screen(difference(before=OUTLOOK | {"batch_step_ps": None})))
    assert "gives tokens to 1 at once 1.50 times\nas fast" in screen


def test_parts_without_serving_are_only_compared():
    figures = {key: value for key, value in difference().items() if key not in ("model", "serving")}
    assert told(difference_screen(figures)).split("\n")[-1].split()[0] == "NVLink"


@pytest.mark.parametrize(
    ("value", "dimension", "text"),
    [
        (None, "rate", "–"),
        (141 * 2**30, "memory", "141 GiB"),
        (22.5 * 2**30, "memory", "22.5 GiB"),
        (624e12, "operations", "624 TOPS"),
        (624e12, "compute", "624 TFLOPS"),
        (0.98, "price", "0.98 USD/h"),
    ],
)
def test_values_for_people(value, dimension, text):
    assert amount(value, dimension) == text


@pytest.mark.parametrize(
    ("key", "title"),
    [
        ("tdp", "power"),
        ("dense.fp8", "dense FP8"),
        ("gemm_compute.bf16", "GEMM BF16"),
        ("attention_compute.flash-2", "attention compute flash-2"),
        ("kernel_time", "kernel time"),
        ("slice_of", "slice of"),
    ],
)
def test_titles(key, title):
    assert title_of(key) == title
