"""A batch routed to experts one by one: the naive twin of the grouped products in sim.timing.moe."""


def popular(experts, active, skew=0.5):
    """The chance of each expert to work on a token, no two taken as equal."""
    shares = [(place + 1) ** -skew for place in range(experts)]
    return [min(1.0, active * share / sum(shares)) for share in shares]


def grouped_ps(chances, tokens, shape, number_bytes, tile=64):
    """A grouped product of n x k on a GPU of 1 FLOP and 1 byte a picosecond, expert after expert."""
    n, k = shape
    total = 0.0
    for chance in chances:
        reached = 1 - (1 - chance) ** tokens
        rows = chance * tokens
        compute = 2 * n * k * (rows + reached * (tile - 1) / 2)
        memory = n * k * number_bytes * reached + rows * (k * number_bytes + n * 2)
        total += max(compute, memory)
    return total
