"""The kind of cache that contexts and nests have: the entries that were used last."""

_NONE = object()


class LruCache:
    """A dict of the entries that were used last.

    Parameters
    ----------
    most : int
        Entries, at most.
    most_bytes : int, optional
        Of all entries but the last one.
    bytes_of : function, optional
        The bytes of a value.
    """

    def __init__(self, most, most_bytes=None, bytes_of=None):
        self.most, self.most_bytes, self._bytes_of = most, most_bytes, bytes_of
        self._entries = {}  # the one that was used last is the last one

    def get(self, key, default=None):
        """The value of a key, which is then the one used last."""
        value = self._entries.pop(key, _NONE)
        if value is _NONE:
            return default
        self._entries[key] = value
        return value

    def setdefault(self, key, default):
        """The value of a key, which is `default` from now on where there was none."""
        if (value := self.get(key, _NONE)) is _NONE:
            self[key] = value = default
        return value

    def __setitem__(self, key, value):
        self._entries.pop(key, None)
        self._entries[key] = value
        while len(self._entries) > self.most or len(self._entries) > 1 and self._too_many_bytes():
            self._entries.pop(next(iter(self._entries)), None)

    def _too_many_bytes(self):
        return self._bytes_of is not None and sum(map(self._bytes_of, self._entries.values())) > self.most_bytes

    def __len__(self):
        return len(self._entries)

    def __iter__(self):
        return iter(self._entries)

    def values(self):
        """All values, the one that was used last at the end."""
        return self._entries.values()

    def items(self):
        """All (key, value), the one that was used last at the end."""
        return self._entries.items()

    def discard(self, key):
        """Remove an entry, if it is there."""
        self._entries.pop(key, None)

    def clear(self):
        """Remove all entries."""
        self._entries.clear()
