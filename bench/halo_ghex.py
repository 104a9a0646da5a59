"""GHEX as a contender of halo exchanges: its Python bindings, `pip install ghex` into a folder of TILEWAVE_CONTENDERS.

The package is built from source: Boost's headers, libnuma and an `mpicc` of the same MPI as here (the wheel `mpich`).
"""

import sys

from bench.scalapack import VARIABLE, folders

NAME = "GHEX"


def load():
    """Whether `ghex` can be imported; its folder is searched after those of this Python."""
    for folder in folders():
        sys.path += map(str, folder.glob("lib/python3*/site-packages"))
    try:
        import ghex  # noqa: F401
    except ImportError as error:
        print(f"{NAME} is skipped: {error} ({VARIABLE}=FOLDER)", file=sys.stderr)
        return False
    return True


def exchange_of(context, fields, axis, width):
    """A function that updates the halos of some fields, which lie with two ranks along `axis`."""
    from ghex.context import make_context
    from ghex.structured.cartesian_sets import ProductSet, UnitRange
    from ghex.structured.regular import (
        DomainDescriptor,
        HaloGenerator,
        make_communication_object,
        make_field_descriptor,
        make_pattern,
    )
    from mpi4py import MPI

    first, world = fields[0], make_context(MPI.COMM_WORLD, False)
    begins = [o + at.start for o, at in zip(first.origin, first.inside, strict=True)]
    extents = [at.stop - at.start for at in first.inside]
    domain = ProductSet(*(UnitRange(b, b + n) for b, n in zip(begins, extents, strict=True)))
    everything = ProductSet(*(UnitRange(0, n) for n in first.shape))
    local = DomainDescriptor(context.rank, domain)
    halos = tuple((width, width) if k == axis else (0, 0) for k in range(len(extents)))
    pattern = make_pattern(world, HaloGenerator(everything, halos, (False,) * len(extents)), [local])
    offsets = tuple(at.start for at in first.inside)
    described = [make_field_descriptor(local, f.local, offsets, f.local.shape) for f in fields]
    infos = [pattern(each) for each in described]
    object_ = make_communication_object(world)

    def run(used=(world, pattern, described)):  # GHEX refers to what it was made of
        object_.exchange(infos).wait()

    return run
