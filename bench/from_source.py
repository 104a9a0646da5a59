"""Contenders that are built here from their public source, which a folder of TILEWAVE_CONTENDERS has."""

import dataclasses
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tilewave.launch.launch import mpiexec_command

from bench.scalapack import VARIABLE, roots

FLAGS = ("-O3", "-march=native", "-ffast-math")
TIMEOUT_S = 600


@dataclasses.dataclass(frozen=True)
class Contender:
    """How a program is built.

    Attributes
    ----------
    name : str
    source : str
        The folder of its source in a folder of contenders.
    files : tuple of str
        What is compiled, as patterns below `source`, in this order.
    flags : tuple of str
        In addition to FLAGS.
    changes : dict
        By file: a pattern, and the text in its place.
    """

    name: str
    source: str
    files: tuple
    flags: tuple = ()
    changes: dict = dataclasses.field(default_factory=dict)

    def built(self, folder):
        """The program, in `folder`; None, and a sentence, where its source or a compiler is missing or does not fit."""
        source = next((root / self.source for root in roots() if (root / self.source).is_dir()), None)
        compiler = {".cpp": "mpicxx", "F]90": "gfortran"}.get(self.files[0][-4:], "mpicc")
        places = [Path(sys.executable).parent, *(root / "bin" for root in roots())]
        path = shutil.which(compiler, path=":".join(map(str, places))) or shutil.which(compiler)
        if source is None or path is None:
            return self._skipped(f"no {compiler}, or no {self.source} in {VARIABLE}=FOLDER")
        here = Path(folder) / self.source.replace("/", "-")
        shutil.copytree(source, here)
        for file, (pattern, text) in self.changes.items():
            found, times = re.subn(pattern, text, (here / file).read_text())
            if not times:
                return self._skipped(f"another version of {file}")
            (here / file).write_text(found)
        files = [str(file) for pattern in self.files for file in sorted(here.glob(pattern))]
        command = [path, *FLAGS, f"-I{here}", *files, *self.flags, "-lm", "-o", str(here / "program")]
        done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if "error" in line]
            return self._skipped(f"it does not compile: {lines[0] if lines else '?'}")
        return here / "program"

    def _skipped(self, why):
        print(f"{self.name} is skipped: {why}", file=sys.stderr)


def output_of(program, arguments, ranks=1, threads=1, cluster=None):
    """What a program prints on so many ranks, here or on the hosts of a cluster."""
    command, env = [str(program), *map(str, arguments)], {"OMP_NUM_THREADS": str(threads)}
    if cluster:
        done = cluster.run(command, ranks=ranks, env=env, timeout=TIMEOUT_S)
    else:
        env, here = {**os.environ, **env}, mpiexec_command(ranks, command)
        done = subprocess.run(here, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=env)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    return done.stdout
