"""What each format means, exactly, and what is said about rows that cannot be used."""

import json

import pytest
from workload_parts import DATA, MS, S, requests_of, write

from sim.base.errors import ConfigError
from sim.workload.errors import TraceError
from sim.workload.readers import guess_format, reader
from sim.workload.rows import BadRow, hash_ids
from sim.workload.source import TraceFile


def rows(name, path):
    return list(reader[name](TraceFile(path)))


def only_bad(name, path):
    bad = [row for row in rows(name, path) if isinstance(row, BadRow)]
    assert len(bad) == 1
    return bad[0]


def test_mooncake_keeps_fractions_of_milliseconds_to_the_picosecond():
    assert [row.at_ps for row in rows("mooncake", DATA / "mooncake.jsonl")] == [
        0,
        12 * MS + 500_000_000,
        12 * MS + 500_000_001,
        900 * MS,
        1000 * MS,
    ]


def test_mooncake_lists_other_keys_and_takes_rows_without_hash_ids():
    found = rows("mooncake", DATA / "mooncake.jsonl")
    assert found[2].extra == ("user", "turn")
    assert found[4].hash_ids is None
    assert requests_of(trace=str(DATA / "mooncake.jsonl"))[4].blocks == ()


def test_azure_2023_reads_seven_digits_and_crlf_from_the_first_row():
    found = rows("azure", DATA / "azure.csv")
    assert [row.at_ps for row in found] == [
        0,
        100_000,
        1_250_000_200_000,
        1_300_000_100_000,
        60 * S + 100_000,
    ]
    assert [(row.input_tokens, row.output_tokens) for row in found][-1] == (50, 5)


def test_azure_2024_reads_offsets_and_leap_days():
    at_ps = [row.at_ps for row in rows("azure", DATA / "azure_2024.csv")]
    assert at_ps == [0, S // 2, 3 * S // 2 + 1_000_000, 7 * S // 2, 9 * S // 2]


def test_burstgpt_reads_seconds_with_or_without_sessions(tmp_path):
    found = rows("burstgpt", DATA / "burstgpt.csv")
    assert [row.at_ps for row in found] == [3 * S, 3 * S, 11 * S, 23 * S // 2, 60 * S]
    assert found[0].extra == ("Session ID", "Elapsed time", "Model", "Total tokens", "Log Type")
    first_release = (
        "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,GPT-4,9,8,17,API log\n"
    )
    path = write(tmp_path / "first.csv", first_release)
    assert guess_format(TraceFile(path)) == "burstgpt"
    assert [row[1:4] for row in rows("burstgpt", path)] == [(5 * S, 9, 8)]


def test_failed_burstgpt_requests_are_bad_rows(tmp_path):
    path = write(
        tmp_path / "b.csv", "Timestamp,Model,Request tokens,Response tokens\n5,GPT-4,9,0\n6,GPT-4,9,1\n"
    )
    assert only_bad("burstgpt", path) == BadRow(
        2, "Response tokens is 0; it must be at least 1", "mend the row, or set workload.on_bad_row: skip"
    )


@pytest.mark.parametrize(
    "header",
    [
        "Arrived At,num_prefill_tokens,num_decode_tokens",
        "time,input,output",
        "\ufefftimestamp,prompt_tokens,completion_tokens",
    ],
)
def test_plain_csv_knows_the_usual_names(header, tmp_path):
    path = write(tmp_path / "p.csv", f"{header}\n1.5,10,2\n")
    assert guess_format(TraceFile(path)) == "csv"
    assert [row[1:4] for row in rows("csv", path)] == [(3 * S // 2, 10, 2)]


def test_columns_may_come_in_any_order_with_others_between(tmp_path):
    path = write(tmp_path / "p.csv", 'output_tokens,note,input_tokens,arrived_at_s\n2,"a, b",10,1.5\n')
    (row,) = rows("csv", path)
    assert row[1:4] == (3 * S // 2, 10, 2)
    assert row.extra == ("note",)


GOOD = {"timestamp": 1, "input_length": 5, "output_length": 1}
RANGE = "not JSON that can be used: a number out of range, or too deeply nested"


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("input_length", "-5", "input_length is -5; it must be at least 1"),
        ("input_length", "0", "input_length is 0; it must be at least 1"),
        ("input_length", "5.5", "input_length is 5.5, not a whole number"),
        ("input_length", "99999999999", "input_length is 99999999999; no prompt is that long"),
        ("output_length", "null", "output_length is empty, not a number"),
        ("timestamp", "NaN", "NaN is not a number"),
        ("timestamp", "-Infinity", "-Infinity is not a number"),
        ("timestamp", "1e99", "timestamp is 1E+99, not a number"),
        ("timestamp", "1e999999999999999999999", RANGE),
        ("timestamp", "true", "timestamp is True, not a number"),
        ("timestamp", "-1", "timestamp is -1; it must not be negative"),
        ("timestamp", '"soon"', "timestamp is soon, not a number"),
        ("hash_ids", "3", "hash_ids is not a list of whole numbers"),
        ("hash_ids", "[true]", "hash_ids is not a list of whole numbers"),
        ("hash_ids", f"[{2**64}]", "hash_ids has an id of more than 64 bits"),
        ("hash_ids", "[1, 2", "not JSON: Expecting ',' delimiter at column 74"),
    ],
)
def test_mooncake_says_what_is_wrong_with_a_value(key, value, problem, tmp_path):
    line = json.dumps(GOOD | {key: "?"}).replace('"?"', value)
    path = write(tmp_path / "m.jsonl", f"{json.dumps(GOOD)}\n{line}\n")
    bad = only_bad("mooncake", path)
    assert (bad.line, bad.problem) == (2, problem)
    assert bad.hint


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"timestamp": 1, "input_length": 5}', "no 'output_length' in this row"),
        ('{"timestamp": 1', "not JSON: Expecting ',' delimiter at column 16"),
        ("[1, 5, 1]", "not a JSON object"),
    ],
)
def test_mooncake_says_what_is_wrong_with_a_row(line, problem, tmp_path):
    path = write(tmp_path / "m.jsonl", f"{json.dumps(GOOD)}\n{line}\n")
    bad = only_bad("mooncake", path)
    assert (bad.line, bad.problem) == (2, problem)
    assert bad.hint


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("2023-11-16 18:17:03,5", "only 2 values in this row"),
        ("18:17:03,5,1", "TIMESTAMP is '18:17:03', not a time"),
        ("2023-02-30 18:17:03,5,1", "TIMESTAMP is '2023-02-30 18:17:03': day is out of range for month"),
        ("2023-11-16 18:17:03,,1", "ContextTokens is empty, not a number"),
        ("2023-11-16 18:17:03,nan,1", "ContextTokens is nan, not a number"),
    ],
)
def test_tables_say_what_is_wrong_with_a_row(line, problem, tmp_path):
    path = write(
        tmp_path / "a.csv", f"TIMESTAMP,ContextTokens,GeneratedTokens\n{line}\n2023-11-16 18:17:04,5,1\n"
    )
    assert only_bad("azure", path)[:2] == (2, problem)


def test_an_error_names_file_line_problem_and_remedy(tmp_path):
    path = write(
        tmp_path / "m.jsonl", '{"timestamp": 0, "input_length": 9, "output_length": 9}\n{"timestamp": 1}\n'
    )
    with pytest.raises(TraceError) as caught:
        requests_of(trace=str(path))
    assert isinstance(caught.value, ConfigError)
    assert caught.value.exit_code == 2
    assert str(caught.value) == (
        f"{path}:2: no 'input_length' in this row\n"
        "  hint: add 'input_length', or set workload.on_bad_row: skip"
    )


def test_a_missing_column_is_said_with_those_there_are(tmp_path):
    path = write(tmp_path / "a.csv", "time,input_tokens\n0,1\n")
    with pytest.raises(TraceError) as caught:
        rows("csv", path)
    assert str(caught.value) == (
        f"{path}:1: no column for the output tokens\n"
        "  hint: name it output_tokens; the header has: time, input_tokens"
    )


def test_an_unknown_format_is_said(tmp_path):
    path = write(tmp_path / "x.txt", "hello\n")
    with pytest.raises(TraceError) as caught:
        requests_of(trace=str(path))
    assert str(caught.value) == (
        f"{path}:1: cannot tell the format from the first line\n"
        "  hint: set workload.format to one of azure, burstgpt, csv, mooncake, run"
    )


def test_damaged_gzip_is_said_with_its_line(tmp_path):
    path = write(tmp_path / "m.jsonl.gz", (DATA / "mooncake.jsonl").read_text() * 200)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(TraceError, match="the gzip data is damaged") as caught:
        rows("mooncake", path)
    assert caught.value.line > 1


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_an_empty_file_holds_no_requests(text, tmp_path):
    path = write(tmp_path / "m.jsonl", text)
    with pytest.raises(TraceError, match="no requests in this file"):
        requests_of(trace=str(path), format="mooncake")


def test_unsigned_hashes_are_kept_as_signed_ones():
    assert hash_ids([0, 2**63 - 1, 2**63, 2**64 - 1], "hash_ids") == [0, 2**63 - 1, -(2**63), -1]
