"""Halo exchanges of two ranks: microseconds, against mpi4py by hand and against GHEX, in the same run.

GHEX's Python bindings, `pip install ghex` into a folder of TILEWAVE_CONTENDERS, are built from source: that needs
Boost's headers, libnuma and an `mpicc` of the same MPI as here (the wheel `mpich`).
"""

import itertools

import numpy as np
import tilewave as tw

from bench.contenders import module
from bench.runner import Turn, benchmark, compared, here, race

OURS, CHECKED = "tilewave", "tilewave, arguments compared"
PACKED, TYPES = "mpi4py, packed by hand", "mpi4py, derived types"
BATCH_S = 4e-3  # of a contender's exchanges in a row


# --- on the ranks ---------------------------------------------------------------------------------


def worker(cases, budget_s):
    """{contender: seconds of an exchange} of each case, interleaved, after one turn that is checked."""
    context, found = tw.Context(threads=1), []
    for extent, axis, width, fields in cases:
        ends = []  # what is to be called when a case is over
        shape = [context.size * extent if k == axis else extent for k in range(3)]
        turns = contenders_of(context, ends, shape, axis, width, fields)
        # A turn takes about BATCH_S for each.
        left = race(context, turns, 0, batch_s=BATCH_S, budget_s=budget_s)
        found.append({one.name: one.seconds for one in left})
        for end in ends:
            end()
    return found if context.rank == 0 else None


def contenders_of(context, ends, shape, axis, width, fields):
    """Turns of fields of a shape of three axes, shared along `axis`; what `ends` gets frees them."""
    grid, halo = ([n if k == axis else other for k in range(3)] for n, other in ((context.size, 1), (width, 0)))
    made = [
        tw.field(tuple(shape), "f8", init=float(k + 1), halo=tuple(halo), grid=tuple(grid), context=context)
        for k in range(fields)
    ]
    # Each rank has a neighbour on one side, the rank 0 above, the rank 1 below.
    inside, halos = made[0].inside[axis], slice(0, width)
    gives = slice(inside.start, inside.start + width)
    if context.rank == 0:
        gives, halos = slice(inside.stop - width, inside.stop), slice(inside.stop, inside.stop + width)
    give, get = (tuple(at if k == axis else slice(None) for k in range(3)) for at in (gives, halos))

    def check():
        for k, field in enumerate(made):
            if not (field.local == k + 1).all():
                raise SystemExit(f"halo: wrong values on rank {context.rank}")
            field.local[get] = 0

    arrays = [(field.local, give, get) for field in made]
    runs = {
        OURS: tw.exchange(*made, corners=False, start=False).run,
        CHECKED: lambda: tw.exchange(*made, corners=False),
        PACKED: _packed(context, ends, arrays),
        TYPES: _derived(context, ends, arrays),
    }
    if module("ghex"):
        runs["GHEX"] = _ghex(context, made, axis, width)
    return [Turn(name, run, check=check) for name, run in runs.items()]


def _packed(context, ends, arrays):
    """All fields in one message of prepared requests; NumPy packs and unpacks."""
    from mpi4py import MPI

    other = 1 - context.rank
    shape = (len(arrays), *arrays[0][0][arrays[0][1]].shape)
    out, into = np.empty(shape), np.empty(shape)
    gives = [(buffer, local[give]) for buffer, (local, give, _) in zip(out, arrays, strict=True)]
    gets = [(local[get], buffer) for buffer, (local, _, get) in zip(into, arrays, strict=True)]
    receive, send = MPI.COMM_WORLD.Recv_init(into, other, 1), MPI.COMM_WORLD.Send_init(out, other, 1)
    copyto = np.copyto
    ends += receive.Free, send.Free

    def run():
        receive.Start()
        for target, source in gives:
            copyto(target, source)
        send.Start()
        receive.Wait()
        for target, source in gets:
            copyto(target, source)
        send.Wait()

    return run


def _derived(context, ends, arrays):
    """A message of prepared requests for each field, straight from and to its memory."""
    from mpi4py import MPI

    other, requests = 1 - context.rank, []
    for local, give, get in arrays:
        for at, start in ((get, MPI.COMM_WORLD.Recv_init), (give, MPI.COMM_WORLD.Send_init)):
            begins = [s.start or 0 for s in at]
            kind = MPI.DOUBLE.Create_subarray(local.shape, local[at].shape, begins).Commit()
            requests.append(start([local, 1, kind], other, 2))
            ends += requests[-1].Free, kind.Free
    start, wait = MPI.Prequest.Startall, MPI.Request.Waitall

    def run():
        start(requests)
        wait(requests)

    return run


def _ghex(context, fields, axis, width):
    """GHEX's exchange, of ranks along `axis`."""
    from ghex.context import make_context
    from ghex.structured import cartesian_sets as sets
    from ghex.structured import regular
    from mpi4py import MPI

    first, world = fields[0], make_context(MPI.COMM_WORLD, False)
    begins = [o + at.start for o, at in zip(first.origin, first.inside, strict=True)]
    extents = [at.stop - at.start for at in first.inside]
    domain = sets.ProductSet(*(sets.UnitRange(b, b + n) for b, n in zip(begins, extents, strict=True)))
    everything = sets.ProductSet(*(sets.UnitRange(0, n) for n in first.shape))
    local = regular.DomainDescriptor(context.rank, domain)
    halos = tuple((width, width) if k == axis else (0, 0) for k in range(len(extents)))
    generator = regular.HaloGenerator(everything, halos, (False,) * len(extents))
    pattern, offsets = regular.make_pattern(world, generator, [local]), tuple(at.start for at in first.inside)
    described = [regular.make_field_descriptor(local, f.local, offsets, f.local.shape) for f in fields]
    infos, exchange = [pattern(each) for each in described], regular.make_communication_object(world)

    def run(used=(world, pattern, described)):  # GHEX refers to what it was made of
        exchange.exchange(infos).wait()

    return run


# --- what to run, and what came out ---------------------------------------------------------------


@benchmark(
    "halo",
    __doc__,
    options={
        "--extent": {"type": int, "action": "append", "help": "points a rank along each axis (default 32, 128)"},
        "--seconds": {"type": float, "default": 1.0, "help": "about how long a case is repeated (default 1)"},
    },
)
def halo(options):
    extents = options.extent or ([32] if options.quick else [32, 128])
    cases = list(itertools.product(extents, range(3), (1, 4), (1, 4)))
    found = here(2).call(__name__, cases=cases, budget_s=0.05 if options.quick else options.seconds)
    for (extent, axis, width, fields), times in zip(cases, found, strict=True):
        case = f"{extent}^3 f8, faces normal to axis {axis}, width {width}, {fields} field(s)"
        yield from compared(case, times, "us")
