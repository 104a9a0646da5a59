"""Verified runs: what a run has made of its arrays is compared with the plain loops of its nests, on rank 0."""

import numpy as np

from tilewave import _core, units
from tilewave.errors import KernelError
from tilewave.field.field import Field
from tilewave.nests.call.operands import memory_of
from tilewave.nests.verify.plain_call import number_of, start_of
from tilewave.nests.verify.plain_points import PlainPoints


def copied(context, calls_of, points=(None, None)):
    """Copy the arrays of calls to rank 0 before they run, where runs are verified; part of a collective call.

    Parameters
    ----------
    context : Context
    calls_of : function
        Gives a list of `PlainCall`: what runs, in this order.
    points : (dict or None, dict or None)
        What is added and recorded after each repetition, as ``inject=`` and ``record=``.

    Returns
    -------
    Check or None
        None: nothing is to be verified, or the run will raise an error for what it was given.
    """
    if not context._verify:
        return None
    calls = calls_of()
    if not (yield "a run that is verified", number_of(calls, context)):
        return None
    check, error = Check(context, calls, points), None
    try:
        check.make_room()
    except Exception as problem:
        error = problem
    yield error
    check.gather()
    return check


class Check:
    """Copies on rank 0 of the arrays of some calls, which the plain loops change as the run does."""

    def __init__(self, context, calls, points=(None, None)):
        self._context, self._calls, self._points = context, calls, points
        self._arrays = {memory_of(value): value for call in calls for value in call.arrays.values()}
        self._memory, self._spare = {}, None  # on rank 0, with room for the largest field

    def make_room(self):
        """Make memory on rank 0 for all arrays, and copy those that it has; local."""
        for key, value in self._arrays.items() if self._context.rank == 0 else ():
            if not isinstance(value, Field):
                self._memory[key] = [np.array(value, order="C")]
            elif value.keep == "window":
                self._memory[key] = [start_of(value)]
            else:
                self._memory[key] = [np.empty(value.shape, value.dtype) for _ in range(value.history + 1)]
        sizes = [levels[0].nbytes for levels in self._memory.values()]
        self._spare = np.empty(max(sizes, default=0), np.uint8)

    def gather(self):
        """Copy the fields, with the time steps that they keep; collective."""
        for key, value in self._arrays.items():
            if isinstance(value, Field) and value.keep == "all":
                for back in range(value.history + 1):
                    self._gathered(value, back, self._memory[key][back] if key in self._memory else None)

    def _room_for(self, field):
        """Room for all of a field, on rank 0."""
        if self._context.rank:
            return None
        return self._spare[: field.size * field.dtype.itemsize].view(field.dtype).reshape(field.shape)

    def _gathered(self, field, back, whole):
        self._context._moves(field._storage.gather, 0 if whole is None else whole.ctypes.data, back)
        return whole

    def compare(self, report, plans=None, times=1, every=1, history=()):
        """Run the plain loops, and compare what the run has made of the arrays; part of a collective call.

        Parameters
        ----------
        report : Report or ChainReport
        plans : list of Plan, optional
            Of the nests, for the message. Default: the report's.
        times : int
            How often the calls ran.
        every, history : int, list of dict
            What the reductions were after so many repetitions, again and again.

        Raises
        ------
        KernelError
            On every rank, at the first difference.
        """
        error = wrong = None
        try:
            if self._context.rank == 0:
                wrong = self._run(report, times, every, history)
        except (KeyboardInterrupt, MemoryError) as problem:
            error = problem
        yield error
        differ = None
        for key, value in self._arrays.items():
            is_field, levels = isinstance(value, Field), self._memory.get(key, ())
            if is_field and value.keep == "window":
                continue
            for back in range(value.history + 1 if is_field else 1):
                found = value
                if is_field:
                    found = self._gathered(value, back, self._room_for(value))
                if back < len(levels):
                    differ = differ or self._difference(key, back, found, levels[back])
        wrong = differ or wrong
        if wrong is not None and plans is None:
            plans = [run.plan for run in report.by_nest] if hasattr(report, "by_nest") else [report.plan]
        yield None if wrong is None else KernelError(self._message(wrong, plans))

    def _run(self, report, times, every, history):
        """Run the plain loops; what differs in the reductions and recorded values as text, or None."""
        results, recorded, wrong = {}, {}, None

        def look(done, results):
            nonlocal wrong
            if history and (done % every == 0 or done == times):
                wrong = wrong or _wrong_result(results, history[(done - 1) // every])

        between = self._plain_points(times)
        several = any(call.counted for call in self._calls)  # whose repetitions are time steps of one run
        for done in range(1, 2 if several else times + 1):
            results = {}
            for call in self._calls:
                try:
                    found, recorded = call.run(self._memory, times, look if several else None)
                except Exception as problem:
                    self._memory.clear()  # there is nothing to compare
                    return f"the plain loops of {call.place()} raise {type(problem).__name__}: {problem}"
                results |= found
            if not several:
                look(done, results)
            if between is not None:
                between.after(done - 1, lambda name: self._memory[memory_of(self._named[name])][0])
                recorded = {**recorded, **between.recorded}
        wrong = wrong or (_wrong_result(results, report.results) if results else None)
        for name, right in recorded.items():
            differ = differing(report.recorded[name], right)
            if wrong is None and differ.any():
                index = tuple(np.argwhere(differ)[0].tolist())
                wrong = _element(f"recorded[{name!r}]", index, report.recorded[name], right, differ)
        return wrong

    def _plain_points(self, times):
        """Return the `PlainPoints` between so many repetitions, or None."""
        if self._points == (None, None):
            return None
        self._named = {name: value for call in self._calls for name, value in call.arrays.items()}
        shapes, dtypes = ({n: getattr(v, what) for n, v in self._named.items()} for what in ("shape", "dtype"))
        return PlainPoints(*self._points, shapes, dtypes, times)

    def _difference(self, key, back, found, right):
        """The first element of an array that differs, in the order of the loops, as text; None where none does."""
        differ = differing(found, right)
        if not differ.any():
            return None
        call, nest, name = self._writer(key)
        index, point = call.first_point(nest, name, np.argwhere(differ))
        text = _element(f"{name}.buffer({-back})" if back else name, index, found, right, differ)
        return f"nest {nest.name!r} differs from its plain loops{point}: {text}"

    def _writer(self, key):
        """The last nest that writes an array, or else has it, with its call, and the array's name there."""
        found = [
            (name in nest.written, k, call, nest, name)
            for k, (call, nest) in enumerate((call, nest) for call in self._calls for nest in call.nests)
            for name in nest.arrays
            if memory_of(call.arrays[name]) == key
        ]
        return max(found, key=lambda each: each[:2])[2:]

    def _message(self, wrong, plans):
        names = ", ".join(nest.name for call in self._calls for nest in call.nests)
        if not wrong.startswith("nest "):
            wrong = f"the run of {names} differs from its plain loops: {wrong}"
        context, off = self._context, _core.names_of(self._context._off)
        how = "; ".join(dict.fromkeys(plan._short() for plan in plans))
        on = f"{units.count(context.size, 'rank')}, {units.count(context.threads, 'thread')} each"
        return (
            f"{wrong}. Plan: {how}, on {on}{', without ' + off if off else ''}. This is a fault of Tilewave: please "
            "report it with your program; TILEWAVE_WITHOUT=NAMES switches fast paths off, of which one may be to "
            "blame (docs/guide/running.md)"
        )


def differing(found, right):
    """Where two arrays differ in their bits; NaN equals NaN."""
    if right.dtype.kind == "c":
        return differing(found.real, right.real) | differing(found.imag, right.imag)
    if right.dtype.kind != "f":
        return found != right
    return ~((found == right) & (np.signbit(found) == np.signbit(right)) | np.isnan(found) & np.isnan(right))


def _element(name, index, found, right, differ):
    """An element that differs, as text."""
    count = int(differ.sum())
    more = f" ({count} of {differ.size} elements differ)" if count > 1 else ""
    at = ", ".join(map(str, index))
    return f"{name}[{at}] is {found[index]}, the plain loops give {right[index]}{more}"


def _wrong_result(right, found):
    """The first reduction that differs, as text; None where none does."""
    for name, value_for in right.items():
        value = value_for(found[name])
        if not (value == found[name] or value != value and found[name] != found[name]):
            return f"the result {name!r} is {found[name]}, the plain loops give {value}"
    return None
