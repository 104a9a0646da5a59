"""Schedules as text, rank by rank."""

#: Steps of a lane that `str` shows.
MOST_STEPS = 24


def of_rank(schedule, rank, most=None):
    """Lines of one rank's schedule; of each lane at most so many steps."""
    core = schedule._cores[rank]
    text = _Text(schedule, core)
    messages, sent = schedule.messages[rank], schedule.message_bytes[rank]
    yield (
        f"rank {rank}: {_count(schedule.steps[rank], 'step')}, {_count(messages, 'message')} sent, {sent} bytes; "
        f"memory {schedule.memory_bytes[rank]} bytes"
    )
    for number, array in enumerate(text.arrays):
        yield f"  array {schedule.name_of(number)}: stored {box(array.storage)}, owned {box(array.owned)}"
    for number, lane in enumerate(core.lanes):
        yield f"  lane {number}"
        shown = lane if most is None else lane[:most]
        begin, end = core.repeated[number] if core.repeated else (0, 0)
        for position, step in enumerate(shown):
            if position == begin < end:
                yield f"      repeated: steps {begin} to {end - 1}"
            yield f"    {position:3} {text.step(step)}"
        if len(lane) > len(shown):
            yield f"    ... {len(lane) - len(shown)} more steps; s.text(rank={rank}) shows them"


class _Text:
    """The words for the steps of one rank."""

    def __init__(self, schedule, core):
        self.name_of, self.functions = schedule.name_of, schedule.functions
        self.works, self.tiles, self.messages, self.arrays = core.works, core.tiles, core.messages, core.arrays

    def step(self, step):
        if step.op == "compute":
            return "compute " + self.tile(step.item)
        if step.op == "signal":
            return f"signal {step.count}"
        if step.op == "await":
            return f"await {step.count} of lane {step.item}"
        if step.op == "combine":
            other = self.message(step.count) if step.count >= 0 else "its region"
            return f"combine {self.message(step.item)} as {'left' if step.count == -1 else 'right'} with {other}"
        return f"{step.op} {self.message(step.item)}"

    def tile(self, number):
        if not 0 <= number < len(self.tiles):
            return f"tile {number}"
        tile = self.tiles[number]
        if not 0 <= tile.work < len(self.works):
            return f"tile of work {tile.work}"
        work = self.works[tile.work]
        if (task := work.task) is None:
            where = ", ".join(map(str, tile.coord))
            return f"tile ({where}) {box(tile.box)}" + (f" of work {work.number}" if len(self.works) > 1 else "")
        name = self.functions[task.operation] if 0 <= task.operation < len(self.functions) else task.operation
        lists = (
            f"{verb} {', '.join(self.region(r.array, r.box) for r in regions)}"
            for verb, regions in (("reads", task.reads), ("writes", task.writes))
            if regions
        )
        return f"task {work.number} {name}: {'; '.join(lists)}".removesuffix(": ")

    def message(self, number):
        if not 0 <= number < len(self.messages):
            return f"message {number}"
        m = self.messages[number]
        what = f"{m.pieces} pieces" if m.pieces else self.region(m.array, m.region)
        direction = f"to rank {m.peer}" if m.send else f"from rank {m.peer}"
        return f"message {number}: {what}, {m.bytes} bytes {direction}, tag {m.tag}"

    def region(self, array, region):
        return f"{self.name_of(array)}{box(region)}"


def box(bounds):
    """``[0:4, 2:3]``."""
    lo, hi = bounds
    return "[" + ", ".join(f"{l}:{h}" for l, h in zip(lo, hi, strict=True)) + "]"


def _count(number, what):
    return f"{number} {what}" + ("" if number == 1 else "s")
