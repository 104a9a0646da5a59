"""Girih as a contender of heat in time: diamonds in time, wavefronts in space, tuned by itself (Malas et al. 2015)."""

import re

from bench.from_source import Contender, output_of

GIRIH = Contender(
    "Girih",
    "girih",
    ("src/driver.c", "src/*utils.c", "src/performance.c", "src/verification.c", "src/kernels/*.c"),
    ("-Isrc", "-fopenmp", "-fcommon"),
)
#: Its 7-point stencil with constant coefficients.
KERNEL = 1
#: Of its time steppers, diamonds; of its wavefronts, the one with relaxed synchronisation.
DIAMOND, RELAXED = 2, 2


def rates(program, n, steps, threads):
    """Of its repetitions the slowest and the fastest, in 1e9 points a second."""
    arguments = ["--nx", n, "--ny", n, "--nz", n, "--nt", steps, "--target-kernel", KERNEL]
    text = output_of(program, [*arguments, "--target-ts", DIAMOND, "--mwd-type", RELAXED], threads=threads)
    found = re.findall(r"Total RANK0 MStencil/s (?:MIN|MAX): +(\S+)", text)
    return [float(rate) * 1e-3 for rate in found]
