"""Kernels that are compiled in threads while their nests, and others, are planned."""

from tilewave import _core
from tilewave.nest.bounds import Loops
from tilewave.nests.call.nest_call import checked_call
from tilewave.nests.call.run_call import RunCall
from tilewave.nests.plan.kernel_maker import KernelMaker
from tilewave.plan.fixed import fixed_by
from tilewave.plan.plan import request_of


def start_kernels(nest, context, reverse, plan, arguments, reduce):
    """Begin to compile what plans of a nest are measured with; local.

    Parameters
    ----------
    nest, context, reverse, plan, arguments, reduce
        As of `tilewave.bind`; what cannot be run is refused there.

    Returns
    -------
    list of Kernel
        They are found again as long as somebody holds them.
    """
    try:
        call = RunCall(nest, context, Loops(reverse=reverse), arguments, plan, reduce=reduce)
        given = checked_call(call, call.loops, arguments, fixed_by(plan))
        request, machine = request_of(given.choices, context.threads), context._core.machine()
        alternatives = _core.alternatives(given.problem.core, context.size, request, machine, False)
        maker = KernelMaker(context, given)
        kernels = [maker.prepare(each, each.plan, None).kernel for each in alternatives]
    except Exception:  # binding it says so, on all ranks
        return []
    for kernel in kernels:
        kernel.start()
    return kernels
