"""A replica under its users, one step after the other: slow, plain, and with lists only."""


def chunks_of(prompts, left, is_chunked):
    """Which prompts the next step computes, and how much of each."""
    chunks = []
    for prompt in prompts:
        size = prompt["input"] - prompt["done"]
        if size > left and is_chunked:
            size = max(left, 0)
        elif size > left and (chunks or left <= 0):
            size = 0
        if size == 0:
            break
        chunks.append((prompt, size))
        left -= size
        if left <= 0:
            break
    return chunks


def has_room(first, inside, rule, kv_tokens):
    """Whether one more fits the memory and the number of sequences."""
    held = sum(each["input"] + each["output"] for each in [first, *inside])
    return len(inside) < rule.max_sequences and held <= kv_tokens


def mean(numbers):
    """Their mean; 0 for none."""
    return sum(numbers) / len(numbers) if numbers else 0.0


def step_ps(timing, table, parts, batch, context):
    """One step."""
    if not parts:
        return table.step_ps(batch, context)
    return timing.mixed_ps(parts, batch, context) if batch else timing.prefill_ps(parts)


def played(timing, rule, kv_tokens, users, lengths, request_time=0, ahead=False):
    """Mean TTFT, mean TPOT and the end, all in picoseconds.

    A request takes `request_time` to get in. `ahead`: who comes during a step is not in the next one, which
    is prepared by then.
    """
    table = timing.decode_table(rule.max_sequences)
    to_send = [list(pair) for pair in lengths]
    waiting = [{"at": 0, "input": i, "output": o, "done": 0, "times": []} for i, o in to_send[:users]]
    to_send = to_send[users:]
    prompts, running, now, closed = [], [], 0, 0
    ttft, tpot = [], []

    while waiting or prompts or running:
        if not (prompts or running):
            now = closed = max(now, waiting[0]["at"] + request_time)
        while (
            waiting
            and waiting[0]["at"] + request_time <= closed
            and has_room(waiting[0], prompts + running, rule, kv_tokens)
        ):
            prompts.append(waiting.pop(0))
        chunks = chunks_of(prompts, rule.token_budget - (len(running) if rule.mixes else 0), rule.is_chunked)
        decoding = [] if chunks and not rule.mixes else list(running)
        context = sum(each["input"] + len(each["times"]) for each in decoding)
        parts = [(size, prompt["done"]) for prompt, size in chunks]
        began = now
        now += step_ps(timing, table, parts, len(decoding), context)
        closed = began if ahead else now
        for each in decoding:
            each["times"].append(now)
        for prompt, size in chunks:
            prompt["done"] += size
            if prompt["done"] == prompt["input"]:
                prompt["times"].append(now)
                prompts.remove(prompt)
                running.append(prompt)
        ended = [each for each in running if len(each["times"]) == each["output"]]
        for each in ended:
            running.remove(each)
            ttft.append(each["times"][0] - each["at"])
            if each["output"] > 1:
                tpot.append((each["times"][-1] - each["times"][0]) / (each["output"] - 1))
            if to_send:
                size, output = to_send.pop(0)
                waiting.append({"at": now, "input": size, "output": output, "done": 0, "times": []})
    return mean(ttft), mean(tpot), now
