"""Tags of what is made with start=False: given back when it dies, at whatever moment on each rank."""

import random

import numpy as np
import pytest

import tilewave as tw
from local_ranks import results_of

SMALL = 40_000  # a bound of tags as some MPI libraries have it
TAGS = 2048  # of prepared calls under that bound


class Prepared:
    """A pattern or an exchange whose result shows whether messages of another one came to it."""

    def __init__(self, context, number):
        self.context, self.value = context, float(number)
        if number % 2:
            self.field = tw.field((6,), "f8", init=self.value, halo=1, periodic=(0,), context=context)
            self.run = tw.exchange(self.field, start=False)
        else:
            self.field, self.M = None, np.full((2, 3), self.value if context.rank == 0 else -1.0)
            self.run = tw.patterns.broadcast(self.M, start=False, context=context)

    def check(self):
        self.run.run()
        seen = self.M if self.field is None else self.field.local
        assert (seen == self.value).all()


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_more_than_there_are_tags_in_a_contexts_life(ranks):
    def body(context):
        first = Prepared(context, 0), Prepared(context, 1)  # these live on
        M = np.zeros((1, 1))
        for _ in range(TAGS + 100):
            tw.patterns.broadcast(M, start=False, context=context)
        for number in range(2, 40):
            Prepared(context, number).check()
        for each in first:
            each.check()

    results_of(ranks, 1, body, max_tag=SMALL)


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_objects_die_at_other_times_on_each_rank(ranks):
    """Under almost all tags, so that each rank has others free."""

    def body(context):
        mine, same = random.Random(context.rank), random.Random(99)
        M = np.zeros((1, 1))
        filling = [tw.patterns.broadcast(M, start=False, context=context) for _ in range(TAGS - 30)]
        alive, dead = {}, []
        for number in range(400):
            alive[number] = Prepared(context, number)
            if len(alive) > 12:  # needed no more on any rank, but this rank may hold it for a while
                dead.append(alive.pop(same.choice(list(alive))))
            while len(dead) > 8 or (dead and mine.random() < 0.5):
                dead.pop(mine.randrange(len(dead)))
            alive[same.choice(list(alive))].check()
        for each in alive.values():
            each.check()
        return len(filling)

    results_of(ranks, 1, body, max_tag=SMALL)


@pytest.mark.parametrize("kind", ["pattern", "exchange"])
def test_the_last_tag_is_an_error_of_all(kind):
    def body(context):
        M = np.zeros((1, 1))
        u = tw.field((6,), "f8", halo=1, context=context)
        held = [tw.patterns.broadcast(M, start=False, context=context) for _ in range(TAGS)]
        if context.rank == 0:
            del held[7]  # on this rank alone: no tag is free on all
        with pytest.raises(tw.ConfigError, match=f"has {TAGS} patterns and exchanges with start=False that are in use"):
            if kind == "pattern":
                tw.patterns.broadcast(M, start=False, context=context)
            else:
                tw.exchange(u, start=False)
        held.clear()
        tw.exchange(u, start=False).run()
        tw.patterns.broadcast(M, start=False, context=context).run()

    results_of(2, 1, body, max_tag=SMALL)
