"""The layouts that the nests which a field is bound to want it to have."""

import weakref


class WantedLayouts:
    """What bound nests want of a field, in the order in which they were bound: (grid, row) along its dimensions, as
    `layout_of_others` has it.
    """

    def __init__(self):
        self._wanted = []

    def note(self, bound, layout):
        self._wanted.append((weakref.ref(bound), layout))

    def users(self):
        """Of each, whether it is there still: ranks may collect what nobody uses at other times."""
        return [int(user() is not None) for user, _ in self._wanted]

    def keep(self, users):
        """Forget the others."""
        self._wanted = [each for each, there in zip(self._wanted, users, strict=True) if there]

    def first(self, without=()):
        """What the first nest wants, of those that are none of `without`; None where there is none."""
        return next((layout for user, layout in self._wanted if user() not in without), None)
