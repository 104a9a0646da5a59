"""Small numbers that decide what a program is."""

import random


class Choices:
    """Draws from a seed; of several options the first is the simplest."""

    def __init__(self, seed):
        self._random = random.Random(seed)

    def below(self, n):
        """A number from 0 to n - 1."""
        return self._random.randrange(n)

    def between(self, low, high):
        """A number from low to high, both among them."""
        return self._random.randint(low, high)

    def pick(self, *options):
        """One of some."""
        return self._random.choice(options)

    def often(self, **weights):
        """One of some names, by weights."""
        return self._random.choices(list(weights), list(weights.values()))[0]

    def chance(self, p):
        """True with a probability."""
        return self._random.random() < p

    def some(self, options, p=0.5):
        """Those of some that a coin picks."""
        return [option for option in options if self.chance(p)]

    def order(self, options):
        """Some things in another order."""
        return self._random.sample(list(options), len(options))
