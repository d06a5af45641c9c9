"""Recorded sessions of our own making, in the formats of public files."""

import json

WEKA = [
    {
        "id": "one",
        "duplicate_of": None,
        "block_size": 64,
        "requests": [
            {
                "t": 0.0,
                "type": "n",
                "in": 130,
                "out": 5,
                "api_time": 2.0,
                "think_time": 0.0,
                "hash_runs": [[1, 2]],
            },
            {
                "t": 3.0,
                "type": "subagent",
                "requests": [
                    {
                        "t": 0.0,
                        "type": "n",
                        "in": 64,
                        "out": 3,
                        "api_time": 1.0,
                        "think_time": 0.0,
                        "hash_runs": [[90, 1]],
                    },
                    {
                        "t": 4.0,
                        "type": "n",
                        "in": 70,
                        "out": 4,
                        "api_time": 2.0,
                        "think_time": 3.0,
                        "hash_runs": [[90, 1]],
                    },
                ],
            },
            {
                "t": 12.0,
                "type": "n",
                "in": 200,
                "out": 7,
                "api_time": 1.5,
                "think_time": 10.0,
                "hash_runs": [[1, 2], [8, 1]],
            },
            {"t": 20.0, "type": "s", "in": 210, "out": 0, "api_time": 1.0, "hash_runs": [[1, 3]]},
            {"t": 25.0, "type": "s", "in": 256, "out": 9, "hash_runs": [[1, 4]]},
        ],
    },
    {"id": "copy", "duplicate_of": "one", "requests": []},
    {
        "id": "two",
        "duplicate_of": None,
        "requests": [
            {
                "t": 0.0,
                "type": "n",
                "in": 64,
                "out": 2,
                "api_time": 1.0,
                "think_time": 0.0,
                "hash_runs": [[1, 1]],
            }
        ],
    },
]
TURNS = [
    {
        "timestamp": 0.0,
        "session_id": 7,
        "turn": 0,
        "input_length": 20,
        "output_length": 4,
        "hash_ids": [0, 1],
    },
    {"timestamp": 500.0, "session_id": 3, "turn": 0, "input_length": 16, "output_length": 2, "hash_ids": [0]},
    {
        "timestamp": 2586.5,
        "session_id": 7,
        "turn": 1,
        "input_length": 33,
        "output_length": 3,
        "hash_ids": [0, 2, 3],
    },
    {
        "timestamp": 3000.0,
        "session_id": 3,
        "turn": 1,
        "input_length": 17,
        "output_length": 1,
        "hash_ids": [0, 4],
    },
]


def jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def clients(folder, rate=2.0, cv=2.0, family="Gamma"):
    """Two clients of ServeGen with an hour each: one steady, one that sends in its second window alone."""
    folder.mkdir()
    steady = [f"{600 * i},{rate},{cv},{family},0.25,2.0" for i in range(6)]
    once = [f"{600 * i},{1.0 if i == 1 else 0},{1.0 if i == 1 else 0},,0,0" for i in range(6)]
    lengths = {
        "0": {"input_tokens": "{10: 0.5, 30: 0.5}", "output_tokens": "{7: 1.0}", "reason_ratio": "{}"},
        "1800": {"input_tokens": "{1000: 1.0}", "output_tokens": "{1: 0.25, 5: 0.75}"},
    }
    for name, rows in (("chunk-0", steady), ("chunk-1", once)):
        (folder / f"{name}-trace.csv").write_text("\n".join(rows) + "\n")
        (folder / f"{name}-dataset.json").write_text(json.dumps(lengths))
    return folder
