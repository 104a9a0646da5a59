"""Schedules with one mistake each, which the checker must name."""

import random
import re

import tilewave as tw


def naming(program, schedule_of, words):
    """A function (kind, count, first): of so many programs, of seeds after the first, that a kind of mistake can spoil,
    the checker names the mistake. `words`, of a kind and what it returned: what the checker must say.
    """

    def name_mutants(kind, count, first):
        made, seed = 0, first
        while made < count:
            seed += 1
            assert seed < first + 60 * count, f"only {made} mutants of {seed - first} programs"
            spoilt = program(seed)
            schedule = schedule_of(spoilt)
            if not (found := kind(random.Random(seed), schedule._cores)):
                continue
            made += 1
            why = tw.check(schedule)
            assert why is not None, f"{spoilt}, {kind.__name__}: nothing found in\n{schedule.text()}"
            assert re.search(words(kind, found), why), f"{spoilt}, {kind.__name__}: {why}"

    return name_mutants
