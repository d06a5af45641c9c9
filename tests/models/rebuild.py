"""Token times from what the Recorder keeps: rows of requests, and segments of decode steps."""

from sim.tables.schema import PHASES

BEFORE_DECODE = list(PHASES)[: list(PHASES).index("decode")]


def rows(table):
    """A table of columns as one dict of plain integers per row."""
    return [
        dict(zip(table, values, strict=True))
        for values in zip(*(column.tolist() for column in table.values()), strict=True)
    ]


def token_times(requests, segments, all_finish=True):
    """The instants of all outputs of each finished request, by id; raises where a segment's batch is wrong.

    Batches are only known where all members finish.
    """
    by_replica = {}
    for segment in segments:
        by_replica.setdefault(segment["replica"], []).append(segment)
    times = {}
    members = {}
    for request in requests:
        if request["finished_ps"] < 0:
            continue
        tokens = times[request["request_id"]] = []
        only_prefill = request["output_tokens"] == 1 and request["decode_replica"] < 0
        if only_prefill or request["second_token_ps"] >= 0:
            tokens.append(request["first_token_ps"])
        joined_ps = request["arrived_ps"] + sum(request[f"phase_{name}_ps"] for name in BEFORE_DECODE)
        for number, segment in enumerate(by_replica.get(request["decode_replica"], ())):
            if not joined_ps <= segment["started_ps"] < request["finished_ps"]:
                continue
            members[segment["replica"], number] = members.get((segment["replica"], number), 0) + 1
            at_ps = segment["started_ps"]
            for step in range(segment["steps"]):
                at_ps += segment["first_step_ps"] + step * segment["step_growth_ps"]
                tokens.append(at_ps)
    for (replica, number), count in members.items() if all_finish else ():
        assert by_replica[replica][number]["batch"] == count
    return times
