"""What the works of a schedule take, from what a user says of them."""

from tilewave import _core
from tilewave.errors import ConfigError, shown


def kernel_rates(schedule, given):
    """Of each kernel, the core's rate: as measured, or seconds a point from `rates`."""
    rates = schedule._rates or [_core.KernelRate() for _ in schedule._kernels] or [_core.KernelRate()]
    for position, kernel in enumerate(schedule._kernels):
        if isinstance(given, dict) and kernel.nest in given:
            try:
                rates[position] = _core.KernelRate(point_s=float(given[kernel.nest]))
            except (TypeError, ValueError):
                raise ConfigError(
                    f"predict: rates: given {shown(given[kernel.nest])} for nest {kernel.nest.name!r}; allowed: "
                    "seconds of a point"
                ) from None
    return rates


def task_rates(schedule, given):
    """Of each function, the core's rate."""
    if given is not None and not isinstance(given, dict):
        raise ConfigError(f"predict: rates: given {type(given).__name__}; allowed: a dict by function or name")
    found = [_core.OperationRate() for _ in schedule.functions]
    for key, value in (given or {}).items():
        if any(kernel.nest is key for kernel in schedule._kernels):
            continue
        calls = schedule._calls or ()
        numbers = [n for n, name in enumerate(schedule.functions) if name == key or n < len(calls) and calls[n] is key]
        if not numbers:
            allowed = ", ".join(schedule.functions) or "none, as it has no tasks"
            raise ConfigError(f"predict: rates: given one of {key!r}; allowed: functions of the schedule: {allowed}")
        seconds = value if isinstance(value, tuple) else (value, _core.OperationRate().amount_s)
        try:
            call_s, amount_s = map(float, seconds)
        except (TypeError, ValueError):
            raise ConfigError(
                f"predict: rates: given {shown(value)} for {key!r}; "
                "allowed: seconds of a call, or (of a call, of a unit)"
            ) from None
        found[numbers[0]] = _core.OperationRate(call_s, amount_s)
    return found
