"""This file has what a call fixes of its plan: the argument ``plan=`` of `tilewave.run` and the like."""

from collections.abc import Mapping

from tilewave import _core
from tilewave.errors import ConfigError, shown
from tilewave.plan.plan import CHOICES, Plan
from tilewave.value import allowed_names

#: What ``plan=`` may fix, by name.
NAMES = (*CHOICES, "threads")
#: What some calls take and others do not, and which do.
TAKEN_BY = {
    "reduce": "tilewave.run, bind, plan and measure",
    **dict.fromkeys(("inject", "record"), "tilewave.run and bind, and with a row a repetition in chain"),
    **dict.fromkeys(("until", "every"), "tilewave.run, and in run() of a chain and of a tuple of nests that was bound"),
    "fastmath": "tilewave.run and bind",
}
#: What planning may spend where nothing is said.
USUAL = "auto"


def fixed_by(plan, planning=USUAL):
    """Return what ``plan=`` and ``planning=`` fix.

    Parameters
    ----------
    plan : Plan, mapping or None
        As it was given.
    planning : str
        What planning may spend.

    Returns
    -------
    (Plan or None, dict)
        A whole plan, or the choices that are fixed, by name, and ``planning`` where it is not the usual. Their values
        are checked where the plan is made.

    Raises
    ------
    ConfigError
        For what is neither a plan nor a mapping, and for names that are no choices.
    """
    if not isinstance(planning, str):
        raise ConfigError(f"planning: given {shown(planning)}; allowed: {_core.plannings}")
    budget = {} if planning == USUAL else {"planning": planning}
    if plan is None or isinstance(plan, Plan):
        return plan, budget
    if not isinstance(plan, Mapping):
        raise ConfigError(
            f"plan: given {type(plan).__name__}; allowed: a tilewave.Plan, or a dict of the choices that are fixed, as "
            'plan={"threads": 1}'
        )
    choices = dict(plan)
    for name in choices:
        if not isinstance(name, str):
            raise ConfigError(f"plan: given a dict with the key {shown(name)}; allowed: {', '.join(NAMES)}")
        if name not in NAMES:
            raise ConfigError(f"plan: no choice {shown(name)}; allowed: {allowed_names(name, NAMES)}")
    choices = {name: tuple(value) if isinstance(value, list) else value for name, value in choices.items()}
    return None, choices | budget


def refuse_choices(arguments):
    """Refuse choices that were given as keywords, and what this call does not take.

    Parameters
    ----------
    arguments : dict
        The keywords that are neither arrays nor scalars of a nest.

    Raises
    ------
    ConfigError
        Which shows what to write.
    """
    choices = {name: shown(value) for name, value in arguments.items() if name in NAMES}
    if choices:
        given = ", ".join(f"{name}={value}" for name, value in choices.items())
        meant = ", ".join(f'"{name}": {value}' for name, value in choices.items())
        raise ConfigError(f"{given}: choices are given in plan=; write plan={{{meant}}}")
    for name in arguments:
        if name in TAKEN_BY:
            raise ConfigError(f"{name}= was given, which this call does not take; allowed: in {TAKEN_BY[name]}")
