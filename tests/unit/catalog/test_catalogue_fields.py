"""Mistakes in catalogue files are told at their place, with the remedy: word for word."""

from textwrap import dedent

import pytest

from sim.base.errors import ConfigError, UnknownNameError
from sim.catalog import Catalog

GPU = """\
- name: b200
  title: B200
  architecture: {value: blackwell, source: a, verified: primary}
  memory: {value: 180 GiB, source: a, verified: primary}
  usable_memory: {value: 179 GiB, source: a, verified: primary}
  memory_bandwidth: {value: 7.7 TB/s, source: a, verified: primary}
  dense:
    bf16: {value: 2250 TFLOPS, source: a, verified: primary}
  pcie: {value: 63 GB/s, source: a, verified: primary}
  tdp: {value: 1 kW, source: a, verified: primary}
"""

LINK = """\
- name: nvl
  title: NVLink
  bandwidth: {value: 900 GB/s, source: a, verified: primary}
  efficiency: {value: 88 %, source: a, verified: primary}
  latency: {value: 1 us, source: a, verified: primary}
  endpoint_latency: {value: 1 us, source: a, verified: primary}
  all_reduce:
    - gpus: 2
      small: {value: [8 KiB = 4 us, 32 KiB = 5 us], source: a, verified: primary}
"""


def refusal(folder, file, text, shelf):
    """The message with which a file is refused, without the folder in front."""
    (folder / file).write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        list(getattr(Catalog(folder), shelf))
    return str(caught.value).replace(f"{folder}/", "")


def test_a_shelf_may_be_a_folder(tmp_path):
    (tmp_path / "gpus").mkdir()
    for name in ("b", "a"):
        (tmp_path / "gpus" / f"{name}.yaml").write_text(GPU.replace("b200", f"{name}200"))
    assert list(Catalog(tmp_path).gpus) == ["a200", "b200"]
    (tmp_path / "gpus.yaml").write_text(GPU.replace("b200", "c200"))
    assert list(Catalog(tmp_path).gpus) == ["c200", "a200", "b200"]
    assert refusal(tmp_path, "gpus/z.yaml", GPU.replace("b200", "a200"), "gpus").startswith(
        "gpus/z.yaml:1:3: a200: a second GPU of this name"
    )


def gpu_refusal(folder, old, new):
    assert old in GPU
    return refusal(folder, "gpus.yaml", GPU.replace(old, new), "gpus")


def link_refusal(folder, old, new):
    assert old in LINK
    return refusal(folder, "links.yaml", LINK.replace(old, new), "links")


def told(text):
    return dedent(text).strip("\n")


def test_the_examples_are_good(tmp_path):
    (tmp_path / "gpus.yaml").write_text(GPU)
    (tmp_path / "links.yaml").write_text(LINK)
    assert list(Catalog(tmp_path).gpus) == ["b200"]
    assert Catalog(tmp_path).links["nvl"].all_reduce == {2: [(8192, 4_000_000), (32768, 5_000_000)]}


def test_a_link_may_say_what_one_queue_pair_and_one_copy_get(tmp_path):
    rates = """\
  queue_pair_rate: {value: 100 Gb/s, source: a, verified: primary}
  copy_engine_rate: {value: 40 GB/s, source: a, verified: primary}
"""
    (tmp_path / "links.yaml").write_text(LINK.replace("  latency:", f"{rates}  latency:", 1))
    link = Catalog(tmp_path).links["nvl"]
    assert (link.queue_pair_bytes_per_s, link.copy_engine_bytes_per_s) == (12.5e9, 40e9)
    (tmp_path / "links.yaml").write_text(LINK)
    link = Catalog(tmp_path).links["nvl"]
    assert (link.queue_pair_bytes_per_s, link.copy_engine_bytes_per_s) == (None, None)


def test_a_value_without_a_source(tmp_path):
    assert gpu_refusal(tmp_path, "{value: 180 GiB, source: a, verified: primary}", "180 GiB") == told("""
        gpus.yaml:4:11: memory: a value without a source
           4 |   memory: 180 GiB
                         ^
          hint: write `memory: {value: ..., source: ..., verified: ...}`
        """)


def test_a_leaf_without_source(tmp_path):
    assert gpu_refusal(tmp_path, "180 GiB, source: a", "180 GiB") == told("""
        gpus.yaml:4:11: memory: a value without source
           4 |   memory: {value: 180 GiB, verified: primary}
                         ^
          hint: add `source:`; see sources.yaml for sources
        """)


def test_an_unknown_mark(tmp_path):
    assert gpu_refusal(
        tmp_path, "180 GiB, source: a, verified: primary", "180 GiB, source: a, verified: sure"
    ) == told("""
        gpus.yaml:4:49: memory.verified: unknown mark 'sure'
           4 |   memory: {value: 180 GiB, source: a, verified: sure}
                                                               ^
          hint: choose from primary, secondary, memory, measured and assumption
        """)


def test_an_assumption_without_a_reason(tmp_path):
    assert gpu_refusal(
        tmp_path, "1 kW, source: a, verified: primary", "1 kW, source: a, verified: assumption"
    ) == told("""
        gpus.yaml:10:8: tdp: an assumption without a reason
          10 |   tdp: {value: 1 kW, source: a, verified: assumption}
                      ^
          hint: add `note:` with the reason
        """)


def test_an_unknown_key(tmp_path):
    assert gpu_refusal(
        tmp_path, "  pcie:", "  pcei: {value: 1 GB/s, source: a, verified: memory}\n  pcie:"
    ) == told("""
        gpus.yaml:9:3: pcei: unknown key
           9 |   pcei: {value: 1 GB/s, source: a, verified: memory}
                 ^
          hint: did you mean 'pcie'?
        """)


def test_an_unknown_key_in_a_leaf(tmp_path):
    assert gpu_refusal(tmp_path, "179 GiB, source: a", "179 GiB, sorce: a") == told("""
        gpus.yaml:5:35: usable_memory.sorce: unknown key
           5 |   usable_memory: {value: 179 GiB, sorce: a, verified: primary}
                                                 ^
          hint: did you mean 'source'?
        """)


def test_a_missing_key(tmp_path):
    assert gpu_refusal(tmp_path, "  tdp: {value: 1 kW, source: a, verified: primary}\n", "") == told("""
        gpus.yaml:1:3: tdp: missing
           1 | - name: b200
                 ^
          hint: add `tdp:`
        """)


def test_a_key_written_twice(tmp_path):
    assert gpu_refusal(tmp_path, "  title: B200\n", "  title: B200\n  title: B300\n") == told("""
        gpus.yaml:3:3: title: written twice
           3 |   title: B300
                 ^
          hint: keep one of the two
        """)


def test_a_wrong_unit_points_at_the_value(tmp_path):
    message = gpu_refusal(tmp_path, "7.7 TB/s", "7.7 TB")
    assert message.startswith("gpus.yaml:6:29: memory_bandwidth: ")
    assert "  hint: " in message


def test_a_second_entry_of_a_name(tmp_path):
    assert refusal(tmp_path, "gpus.yaml", GPU + GPU, "gpus") == told("""
        gpus.yaml:11:3: b200: a second GPU of this name
          11 | - name: b200
                 ^
          hint: rename one of the two
        """)


def test_points_that_do_not_rise(tmp_path):
    assert link_refusal(tmp_path, "32 KiB = 5 us", "32 KiB = 3 us") == told("""
        links.yaml:9:22: all_reduce.0.small: the points do not rise
           9 |       small: {value: [8 KiB = 4 us, 32 KiB = 3 us], source: a, verified: primary}
                                    ^
          hint: sort them; a larger one is never faster
        """)


def test_a_point_without_equals(tmp_path):
    assert link_refusal(tmp_path, "32 KiB = 5 us", "32 KiB 5 us") == told("""
        links.yaml:9:22: all_reduce.0.small: '32 KiB 5 us' is not a point
           9 |       small: {value: [8 KiB = 4 us, 32 KiB 5 us], source: a, verified: primary}
                                    ^
          hint: write points as `8 KiB = 5 us`
        """)


def test_a_number_of_gpus_that_is_none(tmp_path):
    assert link_refusal(tmp_path, "gpus: 2", "gpus: two") == told("""
        links.yaml:8:13: all_reduce.0.gpus: 'two' is not a whole number above zero
           8 |     - gpus: two
                           ^
          hint: write a number such as 8
        """)


def test_no_yaml(tmp_path):
    message = refusal(tmp_path, "gpus.yaml", "- name: b200\n  title: [B200\n", "gpus")
    assert message.startswith("gpus.yaml:3:1: not YAML: ")


def test_no_list(tmp_path):
    assert refusal(tmp_path, "gpus.yaml", "b200: {}\n", "gpus") == told("""
        gpus.yaml:1:1: not a list of entries
          hint: start with `- name: ...`
        """)


def test_an_unknown_name_is_answered_with_the_nearest(tmp_path):
    (tmp_path / "gpus.yaml").write_text(GPU)
    with pytest.raises(UnknownNameError) as caught:
        Catalog(tmp_path).gpus["b20"]
    assert str(caught.value) == "unknown GPU 'b20'\n  hint: did you mean 'b200'?"


def test_a_file_is_read_only_when_asked_for(tmp_path):
    (tmp_path / "gpus.yaml").write_text(GPU)
    (tmp_path / "links.yaml").write_text("not a list")
    catalog = Catalog(tmp_path)
    assert catalog.gpus["b200"].tdp_w == 1000
    with pytest.raises(ConfigError):
        catalog.links["nvl"]


def test_provenance_keeps_what_was_written(tmp_path):
    (tmp_path / "gpus.yaml").write_text(GPU)
    leaf = Catalog(tmp_path).gpus["b200"].provenance["dense.bf16"]
    assert (leaf.text, leaf.source, leaf.verified, leaf.line) == ("2250 TFLOPS", "a", "primary", 8)
