"""heat (PyPI) as a contender of `bench matmul`: in another environment, run by our mpiexec at the same place.

It is looked for in the folders of TILEWAVE_CONTENDERS: roots of virtual environments with `heat` and `mpi4py`.
"""

import json
import tempfile
from pathlib import Path

from bench.scalapack import roots

NAME = "heat"


def python():
    """The Python of an environment with heat; None where there is none."""
    return next((r / "bin" / "python" for r in roots() if list(r.glob("lib/python3*/site-packages/heat"))), None)


def contenders(start, ranks, sizes, repeats):
    """{n: a contender of `bench matmul`}; {} without heat.

    Parameters
    ----------
    start : function
        Of a command and a number of ranks: runs it, and returns its exit code.
    """
    from tilewave.launch.launch import find_mpiexec

    if python() is None:
        return {}
    library = Path(find_mpiexec()).resolve().parent.parent / "lib"
    with tempfile.TemporaryDirectory(prefix="tilewave-heat.") as folder:
        out = Path(folder) / "seconds.json"
        program = Path(__file__).with_name("heat_program.py")
        command = ["env", f"LD_LIBRARY_PATH={library}", python(), program, out, repeats, *sizes]
        code = start([str(word) for word in command], ranks)
        if code or not out.exists():
            raise SystemExit(f"bench matmul: heat ended with exit code {code}")
        found = json.loads(out.read_text())
    return {
        int(n): {"name": NAME, "family": NAME, "grid": (ranks, 1), "seconds": seconds, "plan": ""}
        for n, seconds in found.items()
    }
