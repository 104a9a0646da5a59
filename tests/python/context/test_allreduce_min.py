"""Numbers that all ranks compare, by a tree."""

import pytest
from local_ranks import on_ranks


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 6])
def test_the_least_of_all_ranks_is_known_to_all(ranks):
    """Whichever rank has it."""

    def on_rank(context):
        values = [0 if context.rank == k else 1 for k in range(ranks)]
        return context._core.allreduce_min([*values, -context.rank])

    results, errors = on_ranks(ranks, 1, on_rank)
    assert not any(errors) and results == [[0] * ranks + [1 - ranks]] * ranks
