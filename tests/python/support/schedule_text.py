"""Everything that a schedule says, as text: for comparing two ways to make it."""


def schedule_text(schedule):
    parts = [schedule.rank, schedule.ranks, schedule.space, list(schedule.buffers), list(schedule.lanes)]
    for items in (schedule.arrays, schedule.tiles, schedule.messages):
        for item in items:
            parts.append({name: getattr(item, name) for name in dir(item) if not name.startswith("_")})
    return str(parts)
