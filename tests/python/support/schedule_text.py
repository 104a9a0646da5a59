"""Everything that a schedule says, as text: for comparing two ways to make it."""


def _plain(value):
    """Plain data, whatever class of the core it is."""
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if type(value).__module__.startswith("tilewave") and type(value).__name__ != "Step":
        names = [name for name in dir(value) if not name.startswith("_")]
        return {name: _plain(item) for name in names if not callable(item := getattr(value, name))}
    return value


def schedule_text(schedule):
    parts = [schedule.rank, schedule.ranks, schedule.buffers, schedule.lanes]
    return str(_plain([*parts, schedule.works, schedule.arrays, schedule.tiles, schedule.messages, schedule.results]))
