"""Draws how a program is run: bounds, memory, numbers that are wanted, the door, ranks, lanes, the plan, fast paths."""

import itertools

from random_programs.bounds import draw_over
from random_programs.memory import LETTERS
from random_programs.model import Affine, Assign, If, Weak
from random_programs.boxes import box_of
from random_programs.points import draw_points
from random_programs.reordered import OWN, own_arrays
from random_programs.setting import Loops, Setting
from random_programs.sizes import Sizes
from random_programs.whole import can_be_whole, draw_whole

#: Choices of a plan: how often they are fixed, and to what.
PLAN = {"grouping": (0.3, "hyperplane", "vertical"), "schedule": (0.3, "blocking", "overlapping"),
        "lookahead": (0.3, 1, 2, 4), "temporal_block": (0.3, 2, 3, 8), "aggregate": (0.15, 1, 2, 16),
        "chunk_bytes": (0.1, 64, 1024), "helper": (0.1, True), "poll_period_s": (0.15, 0.0, 1e-6, 1e-3),
        "synchronous": (0.15, True, False), "storage": (0.15, "plain", "skewed"),
        "generator": (0.15, "sweep", "stencil")}  # fmt: skip


def setting(choices, program, without):
    """A setting of choices; `without`: names of fast paths that are switched off."""
    return _Drawn(choices, program, without).setting


class _Drawn:
    def __init__(self, choices, program, without):
        self.c, self.program, c = choices, program, choices
        self.setting = s = Setting(without=without)
        s.ranks, s.lanes = c.pick(1, 1, 2, 3, 2, 4, 5), c.between(1, 3)
        nest = program.nests[0]
        self.space = nest.indices[nest.timed :]
        self.clean = "clean batch" in program.kinds and c.chance(0.8)
        self._periodic()
        Sizes(c, program, s)
        self._memory()
        self._loops()
        self._reduce()
        self._door()
        one = program.door == "one" and s.door == "chain"
        if program.timed and (one or s.door in ("run", "several", "bind")) and c.chance(0.4):
            draw_points(c, program, s)
        self._windows()
        self._plans()
        self._others()
        s.kinds |= {f"{s.ranks} ranks", f"{s.lanes} lanes"}

    def _periodic(self):
        s = self.setting
        s.loops_periodic = ()
        written = [array for array in self.program.arrays.values() if array.role == "written"]
        plain = all({*array.axes} - {"t"} == {*self.space} for array in written)
        if self.program.independent and plain and not self.clean and self.c.chance(0.3):
            s.loops_periodic = tuple(self.c.some(self.space))
        s.kinds |= {"periodic"} if s.loops_periodic else set()

    def _loops(self):
        c, s = self.c, self.setting
        for nest in self.program.nests:
            straight = self.program.door != "one" and c.chance(0.2)
            loops = s.loops[nest.name] = Loops(periodic=() if straight else s.loops_periodic)
            if c.chance(0.2):
                loops.reverse = tuple(c.some(self.space))
            if c.chance(0.35):
                loops.over = draw_over(c, nest, self.program, s)
            s.kinds |= {name for name in ("over", "reverse") if getattr(loops, name)}

    # Memory.

    def _memory(self):
        c, s, program = self.c, self.setting, self.program
        written = {name for nest in program.nests for name in nest.written()}
        in_place = s.ranks == 1 and c.chance(0.4) and not s.history and not self._reads_before()
        for name, array in program.arrays.items():
            if name in s.history or name in written and not in_place:
                continue
            if name not in written and not c.chance(0.5 if array.role == "read" else 0.8):
                continue
            layouts = ["C", "F", "negative", "strided", "offset"]
            s.layouts[name] = c.pick(*layouts) if name in written else c.pick(*layouts, "read-only", "unaligned")
            if name not in written and len(array.axes) == 1 and array.dtype.str[1:] in LETTERS and c.chance(0.5):
                s.layouts[name] = c.pick(*LETTERS[array.dtype.str[1:]])
            s.kinds.add(f"memory {s.layouts[name]}")

        names = [name for name in s.layouts if name not in written and program.arrays[name].role == "read"]
        for one, two in itertools.combinations(names, 2):
            same = s.shapes[one] == s.shapes[two] and s.values[one].dtype == s.values[two].dtype
            if not same or {one, two} & {*s.aliases, *s.aliases.values(), *s.overlaps, *s.overlaps.values()}:
                continue
            if c.chance(0.4):
                s.aliases[two], s.values[two], s.layouts[two] = one, s.values[one], s.layouts[one]
            elif c.chance(0.5) and s.shapes[one][0]:
                s.values[two][:-1], s.layouts[one], s.layouts[two] = s.values[one][1:], "C", "C"
                s.overlaps[two] = one
        for name in program.arrays:
            if name not in s.layouts and c.chance(0.08):
                grid = [1] * len(s.shapes[name])
                grid[c.below(len(grid))] = s.ranks
                s.moved[name] = {"grid": tuple(grid), "storage": "plain", "threads": 1}
            elif name not in s.layouts and c.chance(0.05):
                s.halos[name] = c.pick(1, 2)
        s.kinds |= {kind for kind in ("aliases", "overlaps", "moved", "halos") if getattr(s, kind)}

    def _windows(self):
        """Fields that nobody reads after the run: what they have left is in numbers, or in other arrays."""
        c, s, program = self.c, self.setting, self.program
        taken = {*s.layouts, *s.history, *s.moved, *s.halos, *s.inject, *s.record}
        written, several = {name for nest in program.nests for name in nest.written()}, program.door == "several"
        fields = [name for name in program.arrays if name in written - taken]
        one = program.door == "one" and not program.timed
        if program.door == "chain":  # each nest begins with another window
            users = [name for nest in program.nests for name in nest.arrays()]
            fields = [name for name in fields if users.count(name) == 1]
        elif not (one or several):
            return
        if s.door == "loops" or not c.chance(self._how_often_windows()):
            return
        if self.clean:
            fields = [name for name in fields if program.arrays[name].times != "last"]
        elif not any(s.reduce.values()) and len(fields) == len(written):
            fields = fields[1:]
        for name in c.some(fields, 1 if self.clean else 0.7):
            how = c.pick("array", "function", "number", "scratch" if program.door == "one" else "array")
            if self.clean and c.chance(0.9):  # the same for each problem
                whole, problems = s.values[name], program.problems()
                one = (slice(1 if axis in problems else None) for axis in program.arrays[name].axes)
                whole[...], how = whole[tuple(one)], c.pick("function", "number")
            if how in ("number", "scratch") and s.values[name].size:
                s.values[name][...] = s.values[name].flat[0]
            if how == "scratch" and s.shapes[name] != self._scratch_shape(name, fields):
                how = "number"
            s.windows[name] = how
        s.kinds |= {f"window by {how}" for how in s.windows.values()}

    def _how_often_windows(self):
        likes = "batch" in self.program.kinds or any(self.setting.reduce.values())
        return 0.95 if self.clean else 0.6 if likes else 0.1

    def _scratch_shape(self, name, fields):
        """As long along each loop index as the longest array that is not one of the windows."""
        longest = {}
        for access, _ in self.program.nests[0].accesses():
            array = self.program.arrays[access.array]
            if access.array in fields or array.role == "table" or not all(isinstance(s, Affine) for s in access.at):
                continue
            for subscript, extent in zip(access.at, self.setting.shapes[access.array], strict=True):
                longest[subscript.index] = max(longest.get(subscript.index, 0), extent)
        return tuple(longest.get(axis) for axis in self.program.arrays[name].axes)

    def _reads_before(self):
        return any(
            access.at[0].offset * (-1 if self.program.backwards else 1) < 0
            for nest in self.program.nests
            for access, _ in nest.accesses()
            if self.program.arrays[access.array].times == "steps"
        )

    # Numbers.

    def _reduce(self):
        """Numbers of locals, and of arrays of which each point writes one element."""
        c, s, program = self.c, self.setting, self.program
        nothing = "writes nothing" in program.kinds
        wanted = nothing or c.chance(0.0 if self.clean else 0.5 if program.door == "chain" else 0.25)
        names = [nest.name for nest in program.nests]
        for nest in program.nests if wanted and len(names) == len({*names}) else ():
            accesses = [access for access, written in nest.accesses() if written]
            whole = set(self.space)
            arrays = [
                access.array
                for access in accesses
                if program.arrays[access.array].times != "rows"
                and sum(access.array == other.array for other in accesses) == 1
                and {s.index for s in access.at if isinstance(s, Affine) and s.factor == 1} >= whole
                and program.arrays[access.array].dtype.kind != "c"
            ]
            values = [*arrays, *_locals(nest.body)]
            values = [name for name in values if name[0] == "r"] if nothing else values
            found = {}
            for number in range(c.between(1, 3) if values else 0):
                what = c.pick(*values)
                places = not program.timed or what not in arrays
                functions = ("sum", "max", "min") + ("argmax", "argmin") * places
                found[f"{nest.name} {number}"] = c.pick(*functions), what
            s.reduce[nest.name] = found
            s.kinds |= {"reduce"} if found else set()

    # The door, and how it runs.

    def _door(self):
        c, s, program = self.c, self.setting, self.program
        if program.door == "one":
            s.door = c.often(run=6, bind=2, plan=1, check=1, chain=1)
        else:
            s.door = "several" if program.door == "several" else c.often(chain=3, turns=1)
        if can_be_whole(program, s) and c.chance(0.2):
            s.door, s.whole = "loops", draw_whole(c)
            if s.whole["reordered"]:
                s.values |= own_arrays(c)
                s.layouts |= {name: c.pick("C", "F") for name in c.some(OWN) if s.ranks == 1}
                s.kinds.add("reordered")
        s.times = c.pick(1, 2, 3) if s.door == "chain" else 2 if c.chance(0.25) else 1
        s.planning = "quick" if c.chance(0.3) else "auto"
        numbers = [n for nest in program.nests for n, (f, _) in s.reduce.get(nest.name, {}).items() if "arg" not in f]
        empty = any(low >= high for nest in program.nests for low, high in box_of(nest, program, s).values())
        ends = s.door in ("chain", "several") and numbers and not empty
        if ends and not any(each.over for each in s.loops.values()):
            s.times, s.every = c.between(1, 5) if s.door == "chain" else s.times, c.pick(1, 2, 3)
            s.until = (c.pick(*numbers), c.pick(0.5, 3.0, 20.0)) if c.chance(0.7) else None
            s.kinds |= {"until"} if s.until else set()
        weights = sorted({"c"} & {name for nest in program.nests for name in nest.used_scalars()})
        if s.door == "chain" and c.chance(0.3):
            s.again = {name: type(s.scalars[name])(c.pick(0.75, -0.5)) for name in weights}
            if "step rows" in program.kinds and any("d" in nest.used_scalars() for nest in program.nests):
                s.again["d"] = c.pick(1, 2, 3)  # which the rows may depend on
            s.kinds.add("chain again")
        s.proved = s.door == "chain" and c.chance(0.2)
        s.bound = s.door == "several" and c.chance(0.3)
        s.joined = s.door == "several" and c.chance(0.6)
        s.kinds.add(f"door {s.door}")

    def _others(self):
        """Runs of another number of steps, with other scalars; blocks of few steps."""
        c, s, program = self.c, self.setting, self.program
        if s.door in ("chain", "loops", "turns"):
            return
        s.block = c.pick(1, 2, 3) if program.timed and c.chance(0.3) else 0
        s.kinds |= {"steps in blocks"} if s.block else set()
        if s.inject or s.record or s.history or not c.chance(0.25):
            return
        used = sorted({name for nest in program.nests for name in nest.used_scalars()})
        drawn = {"n": lambda n: c.between(min(2, n), n), "s": lambda s: c.pick(0, 1, 2), "d": lambda d: c.pick(1, 2, 3)}
        values = {name: drawn[name](s.scalars[name]) for name in used if name in drawn}
        values |= {name: type(s.scalars[name])(c.pick(0.75, -0.5)) for name in used if name == "c"}
        whole = program.backwards and any(array.times == "axis" for array in program.arrays.values())
        if program.timed:
            values["steps"] = s.steps if whole else c.between(0, s.steps)
        s.other = values or None
        s.kinds |= {"another run"} if values else set()

    def _plans(self):
        s, names = self.setting, [nest.name for nest in self.program.nests]
        s.plan = self._plan()
        if s.door in ("chain", "turns", "several") and self.c.chance(0.3):
            s.plans = {name: self._plan() for name in names}

    def _plan(self):
        c, s, nest = self.c, self.setting, self.program.nests[0]
        rank, plan = len(nest.indices), {"threads": self.setting.lanes}
        if "inner" in self.program.kinds and c.chance(0.4):
            return {**plan, "generator": "gather"}  # where that is possible
        if c.chance(0.7 if self.clean else 0.4):
            return plan
        if nest.timed and c.chance(0.7 if s.inject else 0.4):
            return plan | self._blocks(rank)
        if c.chance(0.5):
            plan["tile"] = tuple(c.pick(4, 1, 2, 3, 5, 8, 16) for _ in range(rank))
        for name, (p, *values) in PLAN.items():
            if c.chance(p):
                plan[name] = c.pick(*values)
        if rank > 1 and c.chance(0.1):
            plan["skew"] = tuple(sorted(c.order(range(rank))[:2]))
        if rank > 1 and c.chance(0.2):
            across = [0] * (rank - 2) + c.pick([1, -1], [-1, 1], [c.pick(0, 1, -1), 1])
            plan["row"] = tuple(across) if c.chance(0.7) else tuple(c.pick(0, 1, -1) for _ in range(rank))
        if s.ranks > 1 and c.chance(0.25):
            plan["weights"] = tuple(c.pick(1, 2, 5, 100) for _ in range(s.ranks))
        if s.ranks > 1 and c.chance(0.25):
            plan["grid"] = self._grid(rank, nest.timed)
        return plan

    def _blocks(self, rank):
        """Time steps in blocks; over ranks with deep halos where one loop is cut."""
        c, grid = self.c, [1] * rank
        grid[c.between(1, rank - 1)] = self.setting.ranks
        blocks = {"temporal_block": c.pick(2, 3, 4), "generator": c.pick("sweep", "stencil")}
        if c.chance(0.8 if self.setting.inject else 0.5):
            blocks["tile"] = tuple(c.pick(1, 2, 3, 5) for _ in range(rank))
        return blocks | ({"grid": tuple(grid)} if c.chance(0.8) else {})

    def _grid(self, rank, timed):
        c, grid = self.c, [1] * rank
        left = self.setting.ranks if c.chance(0.7) else c.between(1, self.setting.ranks - 1)
        for factor in (2, 3, 2, 5):
            if left > 1 and left % factor == 0:
                grid[c.between(int(timed), rank - 1)] *= factor
                left //= factor
        return tuple(grid)


def _locals(statements):
    """Locals that a body assigns and whose values are real, of one type."""
    found = {}
    for each in statements:
        if isinstance(each, If):
            continue
        if isinstance(each, Assign) and isinstance(each.target, str) and each.target.isidentifier():
            found[each.target] = each.value.dtype
    return [name for name, dtype in found.items() if not isinstance(dtype, Weak) and dtype.kind != "c"]
