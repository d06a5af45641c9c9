"""Who looks at whom, token by token: the naive twin of the counts in sim.catalog.reach."""


def looks_at(token, window, chunk):
    """The tokens that a token looks at, itself included."""
    first = 0
    if window is not None:
        first = max(0, token - window + 1)
    if chunk is not None:
        first = token - token % chunk
    return range(first, token + 1)


def pairs(new, cached, window, chunk):
    """Pairs of query and key when `new` tokens follow `cached` ones."""
    return sum(len(looks_at(token, window, chunk)) for token in range(cached, cached + new))


def touched(new, cached, window, chunk):
    """How many different tokens are looked at when `new` tokens follow `cached` ones."""
    return len({seen for token in range(cached, cached + new) for seen in looks_at(token, window, chunk)})
