"""What each nest of a time step is given, checked."""

import ast
import dataclasses
import functools

from tilewave import _core
from tilewave.errors import ConfigError
from tilewave.field.create import Scratch
from tilewave.field.field import Field
from tilewave.nest.bounds import Loops, loop_directions
from tilewave.nest.box import check_table
from tilewave.nest.nest import Nest
from tilewave.nest.parse import parse
from tilewave.nest.timeless import timeless_reads, without_time
from tilewave.nests.call.arguments import check_kind, lacks_array
from tilewave.nests.call.problem import check_steps, depth_of, lacking_time, make_problem
from tilewave.nests.rewrites import OF_LOOPS, rewritten
from tilewave.nests.rewrites.backwards import check_backwards
from tilewave.nests.rewrites.given_call import GivenCall
from tilewave.nests.rewrites.reductions import require_reductions
from tilewave.nests.rewrites.step_rows import StepRows, like_rows
from tilewave.plan.fixed import refuse_choices

#: Nests of which it is known whether the points of a time step are independent, at most; and those.
MOST_KNOWN = 256
_independent: dict[tuple, bool] = {}


@dataclasses.dataclass
class Part:
    """One nest of the time step, with what it is given."""

    nest: Nest
    loops: Loops
    arguments: dict
    reduce: dict | None

    @functools.cached_property
    def joined(self):
        """Fields whose last two time steps are one after its run: what others had written was a time step to it."""
        fields = ((name, self.arguments[name]) for name in self.loops.again)
        return [name for name, value in fields if isinstance(value, Field) and value.history]

    def same_steps(self, nest):
        """Whether all time steps are the same but for time and the values of arrays, and nothing happens between.

        `nest`: what runs, whose tables lie where they lie in all time steps.
        """
        in_time = lacking_time(nest, like_rows(self.nest, self.arguments))
        timeless = all(nest.time not in axes or name in in_time for name, axes in nest.axes.items())
        return timeless and not self.joined

    def simplest(self, off):
        """The choices of its plan. Where the points of a time step are independent, tiles need no order: other plans
        for a single step differ in nothing but short rows."""
        arrays = like_rows(self.nest, {name: self.arguments[name] for name in self.nest.arrays})
        forms = [
            (name, type(value), value.shape, value.dtype.str, getattr(self.arguments[name], "history", 0))
            for name, value in arrays.items()
        ]
        key = self.nest.signature(), repr((forms, self.loops.key(self.nest))), off
        if key not in _independent:
            if len(_independent) >= MOST_KNOWN:
                _independent.clear()
            try:
                core = make_problem(self.nest, arrays, self.loops, off=off).core
                _independent[key] = not _core.why_no_stencil(core)
            except ConfigError:  # which all ranks will raise
                return {}
        return {"generator": "stencil"} if _independent.get(key) else {}


def loops_of(nests, loops):
    """(nest, its loops) of each nest: of what is given for all of them, what is about its indices."""
    indices = [name for nest in nests for name in nest.indices]
    overs = loops.over if isinstance(loops.over, list | tuple) else [loops.over] * len(nests)
    reverses = loops.reverse if isinstance(loops.reverse, list) else [loops.reverse] * len(nests)
    periodics = loops.periodic
    if not isinstance(periodics, tuple | list) or not all(isinstance(each, tuple | list) for each in periodics or [""]):
        periodics = [periodics] * len(nests)
    if not len(overs) == len(reverses) == len(periodics) == len(nests):
        raise ConfigError(
            f"over=, reverse= or periodic= is a list of another length than there are nests, {len(nests)}; allowed: "
            "one for all, or one a nest"
        )
    found = []
    for nest, over, reverse, periodic in zip(nests, overs, reverses, periodics, strict=True):
        if not isinstance(periodic, tuple | list) or not all(name in indices for name in periodic):
            raise ConfigError(f"periodic: given {periodic!r}; allowed: a tuple of indices of the nests, or one a nest")
        loop_directions(indices, reverse)
        if overs is not loops.over and isinstance(over, dict):
            over = {index: pair for index, pair in over.items() if index in nest.indices}
        if reverses is not loops.reverse:
            reverse = tuple(index for index in reverse if index in nest.indices)
        periodic = tuple(index for index in periodic if index in nest.indices)
        found.append((nest, dataclasses.replace(loops, over=over, reverse=reverse, periodic=periodic)))
    return found


def reductions_of(nests, reduce):
    """Return the reductions of each nest, or None: of those for all nests each is of the last nest that has its arrays
    and locals, and writes one of them where any does.

    Raises
    ------
    ConfigError
    """
    if reduce is None:
        return [None] * len(nests)
    if isinstance(reduce, tuple | list):
        if len(reduce) != len(nests):
            raise ConfigError(
                f"reduce= is a list of {len(reduce)} for {len(nests)} nests; allowed: a dict for all of them, or a "
                "list with a dict or None for each"
            )
        return list(reduce)
    require_reductions(reduce)
    has = [{*nest.arrays, *nest.source.local_names} for nest in nests]
    makes = [{*nest.written, *nest.source.local_names} for nest in nests]
    found = [None] * len(nests)
    for name, reduction in reduce.items():
        names = {name for text in reduction.texts for name in _names(text)} & set().union(*has)
        owners = [(bool(names & makes[k]), k) for k in range(len(nests)) if names <= has[k]]
        if not owners:
            raise ConfigError(
                f"reduce: {name}: {reduction}: no nest has all of it; allowed: arrays and locals of one of the nests "
                f"{', '.join(nest.name for nest in nests)}"
            )
        owner = max(owners)[1]
        found[owner] = {**(found[owner] or {}), name: reduction}
    return found


def _names(text):
    """Return the names in an expression; none in what is none, which the nest refuses."""
    try:
        return [node.id for node in ast.walk(parse(text, mode="eval")) if isinstance(node, ast.Name)]
    except (SyntaxError, ValueError):
        return []


def parts_of(nests, context, loops, arguments, reduce):
    """What each nest is given; checked."""
    changed, written = [], {name for nest in nests for name in getattr(nest, "written", ())}
    for (nest, own), reduced in zip(loops_of(nests, loops), reduce, strict=True):
        own = dataclasses.replace(own, stepwise=True)
        given = {name: arguments[name] for name in nest.arrays if name in arguments}
        for name, value in given.items():
            check_kind(nest, name, value)
        lookups = timeless_reads(nest, own, arguments)
        nest = without_time(nest, own, arguments, written)
        call = rewritten(GivenCall(nest, own, context, given, reduce=reduced), OF_LOOPS)
        changed.append((call.nest, call.loops, lookups, reduced))
    if any(nest.backwards != changed[0][0].backwards for nest, *_ in changed):
        raise ConfigError(
            f"reverse={loops.reverse!r}: time runs backwards in some nests only; allowed: in all nests of a time step"
        )
    nests = tuple(nest for nest, *_ in changed)
    for nest in nests:
        if nest.time is None:
            raise ConfigError(
                f"run: nest {nest.name!r} has no time; allowed in a time step with others: nests whose first index is "
                "time, which write their arrays at +1"
            )
    for name, value in arguments.items():
        if not any(name in nest.arrays or name in nest.scalars for nest in nests):
            refuse_choices({name: value})
            raise ConfigError(
                f"run: none of the nests {', '.join(nest.name for nest in nests)} has an argument {name!r}; allowed: "
                f"{', '.join(dict.fromkeys(each for nest in nests for each in (*nest.arrays, *nest.scalars)))}"
            )
        if isinstance(value, Scratch):
            raise ConfigError(f"array {name!r}: given scratch; allowed for several nests: a field with keep='window'")
    written, parts = set(), []
    everywhere = {name for nest in nests for name in nest.written}
    for nest, own, lookups, reduced in changed:
        given = {name: value for name, value in arguments.items() if name in nest.arrays or name in nest.scalars}
        if missing := [name for name in nest.arrays if name not in given]:
            raise lacks_array(nest, missing[0])
        for name in nest.tables:
            check_table(nest, name, given[name].shape)
        if nest.rows:
            scalars = nest.bind_scalars({name: value for name, value in given.items() if name in nest.scalars})
            StepRows(GivenCall(nest, own, context, given)).parts(0, int(loops.steps), scalars)
        arguments_of, given = given, like_rows(nest, given)
        in_time = set(lacking_time(nest, given))
        check_steps(nest, {name: given[name] for name in nest.arrays}, int(loops.steps))
        places = [
            (each.array, each.offsets[0], nest.where(each), nest.text_of(each))
            for each in nest.places
            if each.array in in_time and each.array not in nest.written
        ]
        source, sign = nest.source, -1 if nest.backwards else 1
        places += [
            (name, sign * offset, f"{source.file}:{source.line(node)}:{source.column(node)}", source.text_of(node))
            for name, offset, node in lookups
        ]
        _check_reads(nest, [place for place in places if place[0] in everywhere], written)
        again = frozenset(name for name in nest.written if name in (written & in_time) - nest.rows.keys())
        check_backwards(nest, given, own, reduced)
        others = frozenset(name for other, *_ in changed if other is not nest for name in other.written)
        # Where the time step at hand is all that it reads and writes, nothing of it is kept.
        current = [place.offsets[0] == 1 for place in nest.places if place.array in nest.written]
        within = again if again == {*nest.written} and all(current) else frozenset()
        own = dataclasses.replace(
            own, steps=min(int(loops.steps), 1), again=again - within, others=others, within=within
        )
        parts.append(Part(nest, own, arguments_of, reduced))
        written |= set(nest.written)
    return parts


def _check_reads(nest, places, written):
    """What a nest only reads and another of the step writes must be there at that time step; `places`: (array, offset
    in time, where, text) of these reads.
    """
    for array, offset, where, text in places:
        if offset > 0 and array not in written:
            raise ConfigError(
                f"{where}: `{text}` is read before a nest of the time step has written it; "
                f"allowed: the nest that writes {array!r} first, or the time step {nest.time}"
            )
        if offset > 1 or offset < 1 and (array in written or offset < 0):
            raise ConfigError(
                f"{where}: `{text}` is a time step that {array!r} no longer has when nest {nest.name!r} "
                f"runs, which does not write it; allowed: {nest.time}+1 after the nest that writes it, {nest.time} "
                "before it"
            )


def histories_of(parts):
    """By field: how many earlier time steps the nests read, where that is more than it keeps."""
    found = {}
    for part in parts:
        for name in part.nest.written:
            value = part.arguments[name]
            if value.ndim == len(part.nest.axes[name]):
                continue
            depth = depth_of(part.nest, name, part.loops.again)
            if depth and not isinstance(value, Field):
                raise ConfigError(
                    f"array {name!r} is a NumPy array, and nest {part.nest.name!r} reads of it a time step that has "
                    f"been replaced by then; allowed: {name} = tilewave.field(array.shape, array.dtype, array)"
                )
            if depth > (value.history if isinstance(value, Field) and value.keep == "all" else 0):
                found[name] = max(found.get(name, 0), depth)
    return found
