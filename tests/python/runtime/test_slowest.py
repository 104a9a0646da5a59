"""The rates that all ranks measure at once: of the slowest rank, on every rank, by a tree."""

import random

import pytest
from local_ranks import on_ranks

NOTHING = 2**63 - 1


def expected(all_mine, each):
    """From the numbers of all ranks, one list a rank."""
    result = []
    for at in range(0, len(all_mine[0]), each):
        given = [mine[at : at + each] for mine in all_mine if mine[at] != NOTHING]
        failed = any(x < 0 for numbers in given for x in numbers)
        result.append((len(given), failed, max(given, key=lambda numbers: numbers[-1]) if given else [0] * each))
    return result


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 6, 7])
def test_slowest_of_all_ranks(ranks):
    rng = random.Random(ranks)
    each, bodies, rounds = 3, 4, 20
    rows = []
    for _ in range(rounds):
        row = []
        for _ in range(ranks):
            mine = []
            for _ in range(bodies):
                numbers = [rng.randint(0, 9) for _ in range(each)]
                kind = rng.random()
                mine += [NOTHING] * each if kind < 0.4 else [-1] * each if kind < 0.45 else numbers
            row.append(mine)
        rows.append(row)

    def body(context):
        return [context._core.slowest(row[context.rank], each, NOTHING) for row in rows]

    results, errors = on_ranks(ranks, 1, body)
    assert not any(errors), errors
    for result in results:
        for got, row in zip(result, rows):
            wanted = expected(row, each)
            assert [one[:2] for one in got] == [one[:2] for one in wanted], f"{ranks} ranks: {row}"
            for (_, failed, numbers), (_, _, theirs) in zip(got, wanted):
                assert failed or list(numbers) == theirs, f"{ranks} ranks: {row}"


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 6])
def test_the_least_of_all_ranks_is_known_to_all(ranks):
    """Whichever rank has it."""

    def on_rank(context):
        values = [0 if context.rank == k else 1 for k in range(ranks)]
        return context._core.allreduce_min([*values, -context.rank])

    results, errors = on_ranks(ranks, 1, on_rank)
    assert not any(errors) and results == [[0] * ranks + [1 - ranks]] * ranks
