"""This file has what factors of distributed matrices have in common: their calls of the core, right-hand sides,
reports."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tilewave import _core, units
from tilewave.errors import ConfigError
from tilewave.linalg.arrays import entered, entered_sides, left
from tilewave.linalg.blas import blas
from tilewave.linalg.checks import require_bool, require_matrix, require_sides, require_square
from tilewave.linalg.layout import of_factor
from tilewave.linalg.matrix import Matrix, as_matrix, require_no_factor
from tilewave.linalg.plan import FactorPlan, WithPrediction, options_of, ranked
from tilewave.timeline.parts import Parts
from tilewave.timeline.timeline import Timeline


@dataclasses.dataclass(frozen=True)
class FactorReport(WithPrediction):
    """How a factorization or a solve went.

    Attributes
    ----------
    plan : FactorPlan
        Its ``explain()`` says why it was chosen.
    moved : tuple of str
        Of the arguments those that were redistributed first: they are not by block columns.
    memory_bytes : int
        Of this rank beyond what is given and what comes out: the panels in flight, and copies of what is
        redistributed.
    time_s : float
        Of the slowest rank, without redistributions.
    parts : Parts or None
        Rank 0: where the lanes' time went, on average.
    timeline : Timeline
        Rank 0: of all ranks; empty elsewhere.
    """

    plan: FactorPlan
    moved: tuple[str, ...]
    memory_bytes: int
    time_s: float
    parts: Parts | None
    timeline: Timeline
    _predict: Any = dataclasses.field(default=None, compare=False, repr=False)

    @classmethod
    def _of(cls, context, plan, done, name="solve"):
        """Return the report of a core's; `name`: what ran."""
        return cls(plan, tuple(done.moved), done.memory_bytes, *cls._how(context, name, plan, done))

    def __str__(self) -> str:
        moved = f"; {' and '.join(self.moved)} redistributed first" if self.moved else ""
        return f"{self.plan._sentence()}\n{self.plan}{moved}\nmeasured {units.seconds(self.time_s)}"


class SingularMatrix(ConfigError, np.linalg.LinAlgError):
    """A system has no unique solution; every rank raises the same.

    Attributes
    ----------
    info : int
        As LAPACK's: the number, from 1, of the first pivot that is 0.
    """

    info = 0


def refused(context, kind, info, text):
    """An error with LAPACK's info, which all ranks know."""
    error = kind(text)
    error.info = info
    return context._shared(error)


def factored(name, kind, make, context, a, choices, text="", overwrite=False):
    """Factor a matrix by block columns; part of a collective call.

    Parameters
    ----------
    name, kind : str
        Of the call, for errors; the core's: "cholesky", "lu" or "qr".
    make : class
        Of the factor.
    choices : dict
        Those of a `FactorPlan` that the caller has made, and `memory`.
    text : str
        What else must be equal on all ranks.
    overwrite : bool
        In the memory of `a`, where it is a matrix that lies as the factor does.

    Returns
    -------
    Matrix
        Of class `make`, with ``info`` and ``report``.
    """
    require_bool(name, "overwrite_a", overwrite)
    if overwrite:
        require_no_factor(name, "a", a)
    given, a = a, entered(name, "a", (yield from as_matrix(a)), context)
    require_matrix(name, "a", a, context)
    if kind != "qr":
        require_square(name, a)
    options = options_of(name, FactorPlan, choices)
    call = _core.linalg.Factorization(name, kind, a._storage, options, blas())
    yield f"{a._identity()}; {call.text}; overwrite_a={overwrite}{text and '; '}{text}"
    plans = yield from ranked(context, call)
    core = context._together(call.run, plans, overwrite or a is not given)
    made = factor_of(make, a, core, FactorPlan._of(plans, context))
    if overwrite and a._blocks.same(made._blocks):
        made._local = a.local
    return made


def factor_of(make, a, core, plan):
    """A factor of `a` that the core has made by a plan."""
    context = a.context
    made = make(context, a.shape, a.dtype, of_factor(a.shape, plan), core.matrix)
    made._factor, made.info = core, core.info
    made.report = FactorReport._of(context, plan, core.report, make.__name__.removesuffix("Factor").lower())
    made._plan = used_alone(plan)
    return made


def used_alone(plan):
    """The plan of a factorization, of what is done with the factor."""
    return dataclasses.replace(plan, predicted_s=None, moving_s=0.0, compared=(), messages="")


def with_sides(name, factor, b, make, text=""):
    """Return what becomes of right-hand sides by `make(storage)`, a run of the core; a part of a collective call, its
    last.

    Returns
    -------
    Matrix or numpy.ndarray
        As b; a matrix in its layout with a ``report``, or one of each schedule.
    """
    b, shape = entered_sides(name, (yield from as_matrix(b)), factor)
    require_sides(name, factor, b, factor.shape[0])
    run = make(b._storage)
    yield f"{factor._identity()}; b {b._identity()}{text}"
    return (yield from left(made_of(b, factor._plan, *factor.context._together(run.run)), shape))


def made_of(like, plan, storage, reports):
    """A matrix as another one, that the core has made in one run or some by a plan."""
    made = Matrix(like.context, like.shape, like.dtype, like.layout, storage)
    found = tuple(FactorReport._of(like.context, plan, each) for each in reports)
    made.report = found if len(found) > 1 else found[0]
    return made
