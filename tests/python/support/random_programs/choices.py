"""Small numbers that decide what a program is, so that one can be drawn again, and made smaller."""

import random


class Choices:
    """Draws numbers from a seed, or gives those of a list again: 0, the simplest, where it ends."""

    def __init__(self, seed=None, given=None):
        self._random, self._given, self.made = random.Random(seed), given, []

    def below(self, n):
        """A number from 0 to n - 1."""
        if self._given is None:
            value = self._random.randrange(n) if n > 1 else 0
        else:
            value = min(self._given[len(self.made)], n - 1) if len(self.made) < len(self._given) else 0
        self.made.append(value)
        return value

    def between(self, low, high):
        """A number from low to high, both among them; low is the simplest."""
        return low + self.below(high - low + 1)

    def pick(self, *options):
        """One of some; the first is the simplest."""
        return options[self.below(len(options))]

    def often(self, **weights):
        """One of some names, by weights."""
        at = self.below(sum(weights.values()))
        for name, weight in weights.items():
            if at < weight:
                return name
            at -= weight
        raise AssertionError(weights)

    def chance(self, p):
        """True with a probability; False is the simplest."""
        return self.below(100) >= 100 - round(100 * p)

    def some(self, options, p=0.5):
        """Those of some that a coin picks."""
        return [option for option in options if self.chance(p)]

    def order(self, options):
        """Some things in another order."""
        left = list(options)
        return [left.pop(self.below(len(left))) for _ in options]


def shrunk(numbers, fails, tries):
    """A list that is shorter and smaller and of which `fails` still holds, after so many tries at most."""
    best, left = list(numbers), tries

    def attempt(candidate):
        nonlocal best, left
        if left <= 0 or candidate == best:
            return False
        left -= 1
        made = fails(candidate)
        if made is None or (len(made), made) >= (len(best), best):
            return False
        best = made
        return True

    before = None
    while best != before and left > 0:
        before = list(best)
        size = max(1, len(best) // 2)
        while size:  # without a part, or with a part of zeros
            at = 0
            while at < len(best):
                if not attempt(best[:at] + best[at + size :]) and any(best[at : at + size]):
                    attempt(best[:at] + [0] * len(best[at : at + size]) + best[at + size :])
                at += size
            size //= 2
        for at in range(len(before)):
            for value in (0, 1, best[at] // 2, best[at] - 1) if at < len(best) and best[at] else ():
                if 0 <= value < best[at] and attempt([*best[:at], value, *best[at + 1 :]]):
                    break
    return best
