"""Halo exchanges of two ranks: microseconds, against mpi4py by hand and against GHEX, in the same run."""

import random
import statistics
import sys

import numpy as np
import tilewave as tw

from bench import halo_ghex
from bench.dense import timed
from bench.results import on_ranks, parser_of, publish, row

OURS, CHECKED = "tilewave", "tilewave, arguments compared"
PACKED, TYPES = "mpi4py, packed by hand", "mpi4py, derived types"
BATCH_S = 4e-3  # of a contender's exchanges in a row


# --- on the ranks ---------------------------------------------------------------------------------


def worker(cases, budget_s):
    """Seconds an exchange takes for each contender of each case, interleaved, after one turn that is checked."""
    context = tw.Context(threads=1)
    found = []
    for case in cases:
        ends = []  # what is to be called when a case is over
        shape = [context.size * case["extent"] if k == case["axis"] else case["extent"] for k in range(3)]
        runs = contenders_of(context, ends, shape, case["axis"], case["width"], case["fields"])
        times = race(context, runs, int(np.clip(budget_s / (BATCH_S * len(runs)), 3, 41)))
        found.append(times)
        for end in ends:
            end()
        if context.rank == 0:
            print(".", end="", flush=True, file=sys.stderr)
    return found if context.rank == 0 else None


def race(context, runs, turns):
    """Seconds of one exchange by each of {name: (run, check)}, in changing order, after one that is checked."""
    for run, check in runs.values():
        run()
        check()
    counts = {name: max(1, int(BATCH_S / timed(context, run, 20))) for name, (run, _) in runs.items()}
    times = {name: [] for name in runs}
    for turn in range(turns):
        for name in random.Random(turn).sample(list(runs), len(runs)):  # caches are as the one before leaves them
            times[name].append(timed(context, runs[name][0], counts[name]))
    return times


def contenders_of(context, ends, shape, axis, width, fields):
    """{name: (run, check)}: fields of a shape of three axes, shared along `axis`; what `ends` gets frees them."""
    grid, halo = ([n if k == axis else other for k in range(3)] for n, other in ((context.size, 1), (width, 0)))
    made = [
        tw.field(tuple(shape), "f8", init=float(k + 1), halo=tuple(halo), grid=tuple(grid), context=context)
        for k in range(fields)
    ]

    def check():
        for k, field in enumerate(made):
            if not (field.local == k + 1).all():
                raise SystemExit(f"halo: wrong values on rank {context.rank}")
            field.local[_halo_slices(field, axis)] = 0

    handle = tw.exchange(*made, corners=False, start=False)
    runs = {OURS: (handle.run, check), CHECKED: (lambda: tw.exchange(*made, corners=False), check)}
    arrays = [(field.local, *_faces(context, field, axis, width)) for field in made]
    runs |= {PACKED: (_packed(context, ends, arrays), check), TYPES: (_derived(context, ends, arrays), check)}
    if halo_ghex.load():
        runs[halo_ghex.NAME] = halo_ghex.exchange_of(context, made, axis, width), check
    return runs


def _halo_slices(field, axis):
    inside = field.inside[axis]
    at = slice(0, inside.start) if inside.start else slice(inside.stop, None)
    return tuple(at if k == axis else slice(None) for k in range(3))


def _faces(context, field, axis, width):
    """Slices of `local` to be sent and received: each rank has a neighbour on one side."""
    inside = field.inside[axis]
    low, high = (inside.start, inside.start + width), (inside.stop - width, inside.stop)
    give, get = (high, (inside.stop, inside.stop + width)) if context.rank == 0 else (low, (0, width))
    return [tuple(slice(*at) if k == axis else slice(None) for k in range(3)) for at in (give, get)]


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


# --- what to run, and what came out ---------------------------------------------------------------


def halo(json_path=None, quick=False, args=()):
    """Faces normal to each axis, widths 1 and 4, 1 and 4 fields, against mpi4py by hand and, where it is, GHEX."""
    parser = parser_of("halo", __doc__)
    parser.add_argument("--extent", type=int, action="append", help="points a rank along each axis (default 32, 128)")
    parser.add_argument("--seconds", type=float, default=1.0, help="about how long a case is repeated (default 1)")
    options = parser.parse_args(list(args))
    cases = [
        dict(extent=extent, axis=axis, width=width, fields=fields)
        for extent in options.extent or ([32] if quick else [32, 128])
        for axis in range(3)
        for width in (1, 4)
        for fields in (1, 4)
    ]
    found = on_ranks("bench.halo", 2, {"cases": cases, "budget_s": 0.05 if quick else options.seconds})
    rows = []
    for case, times in zip(cases, found, strict=True):
        label = "{extent}^3 f8, faces normal to axis {axis}, width {width}, {fields} field(s)".format(**case)
        for name, seconds in times.items():
            theirs = [times[t] for t in (PACKED, TYPES, halo_ghex.NAME) if t in times]
            better = [min(at) for at in zip(*theirs, strict=True)]
            ratio = statistics.median(b / s for b, s in zip(better, seconds, strict=True))
            rows.append(row(label, name, [1e6 * s for s in seconds], "us", ratio_to_contender=ratio))
    publish("halo", rows, json_path)
