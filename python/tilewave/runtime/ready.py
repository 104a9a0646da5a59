"""Local parts of a collective call that come after its first agreement."""


def ready(text, make):
    """What `make` makes on this rank, once all ranks have theirs; else all raise what one of them has raised.

    A part of a collective call: ``found = yield from ready("ready", lambda: np.empty(n))``. The text is what the ranks
    agree on.
    """
    made = error = None
    try:
        made = make()
    except Exception as problem:
        error = problem
    yield error or text
    return made
