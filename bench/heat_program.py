"""heat's product of matrices: a program that is run by the Python of the environment that heat is installed in.

``python heat_program.py FILE REPEATS N...``: rank 0 writes {n: seconds} to FILE. Nothing of tilewave is imported here.
"""

import json
import sys
import time


def main(path, repeats, sizes):
    import heat as ht
    import torch
    from mpi4py import MPI

    torch.set_num_threads(1)
    world, found = MPI.COMM_WORLD, {}
    for n in sizes:
        # The splits that take no redistribution: A by rows, B by columns.
        a = ht.ones((n, n), dtype=ht.float64, split=0) + ht.arange(n, dtype=ht.float64) / n
        b = ht.ones((n, n), dtype=ht.float64, split=1)
        seconds = []
        for _ in range(repeats + 1):
            world.Barrier()
            begin = time.perf_counter()
            c = ht.matmul(a, b)
            seconds.append(world.allreduce(time.perf_counter() - begin, MPI.MAX))
        right = abs(float(c.larray[0, 0]) - (n + (n - 1) / 2)) < 1e-6 * n if c.larray.numel() else True
        if not world.allreduce(right, MPI.LAND):
            raise SystemExit("heat: wrong values")
        found[n] = seconds[1:]
    if world.rank == 0:
        with open(path, "w") as file:
            json.dump(found, file)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), [int(n) for n in sys.argv[3:]])
