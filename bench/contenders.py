"""Contenders: modules and libraries that are installed, programs and loops that are compiled here.

They are looked for in this environment and in the folders that TILEWAVE_CONTENDERS names (with colons between; roots of
environments or of unpacked packages). What is missing is said, and left out.
"""

import ast
import ctypes
import dataclasses
import functools
import importlib
import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

#: Environment variable: folders where contenders are installed.
VARIABLE = "TILEWAVE_CONTENDERS"
FLAGS = ("-O3", "-march=native", "-ffast-math")


def folders():
    """The folders that the environment names."""
    return [Path(p) for p in os.environ.get(VARIABLE, "").split(":") if p]


def roots():
    """Folders where contenders may be."""
    return [*folders(), Path(sys.prefix), Path("/")]


def skipped(name, why):
    """Say that a contender is left out."""
    print(f"{name} is skipped: {why}", file=sys.stderr)


@functools.cache
def module(name):
    """A module of this environment, or of a folder of contenders; None where there is none."""
    sys.path += [str(path) for folder in folders() for path in folder.glob("lib/python3*/site-packages")]
    try:
        return importlib.import_module(name)
    except ImportError as error:
        return skipped(name, f"{error} (pip install it; {VARIABLE}=FOLDER)")


def plain(body, *loops, more="", total="", **options):
    """Plain loops around a body under Numba; None where it is not installed.

    Parameters
    ----------
    body : Nest or function
        Of arrays, indices and numbers.
    loops : str
        As "i in range(1, len(u))". What is named in none of them is an argument of the result, in the body's order.
    more : str
        Further arguments.
    total : str
        An expression of which the sum over all points is returned.
    """
    body = getattr(body, "function", body)
    indices = [loop.split()[0] for loop in loops]
    given = [name for name in inspect.signature(body).parameters if name not in indices] + more.split()
    (function,) = ast.parse(inspect.getsource(body)).body
    lines = [f"{' ' * depth}for {loop}:" for depth, loop in enumerate(loops)]
    inside = [*map(ast.unparse, function.body), *([f"total += {total}"] if total else [])]
    lines.append(textwrap.indent("\n".join(inside), " " * len(loops)))
    return compiled(["total = 0.0", *lines, "return total"], given, body.__globals__, **options)


def compiled(lines, arguments, names, **options):
    """A function of these lines under Numba; None where it is not installed."""
    if module("numba") is None:
        return None
    text = "\n".join([f"def loops({', '.join(arguments)}):", *(textwrap.indent(line, " ") for line in lines)])
    exec(text, space := dict(names))
    return module("numba").njit(**options)(space["loops"])


def library(name, flags):
    """The library of a C++ file in this folder; None without g++."""
    compiler = shutil.which("g++")
    if compiler is None:
        return skipped(name, "no g++")
    os.environ.setdefault("GOMP_SPINCOUNT", "100000")  # idle threads leave the cores to the next contender
    with tempfile.TemporaryDirectory() as folder:
        path, source = Path(folder) / "plain.so", Path(__file__).with_name(name)
        command = [compiler, "-std=c++17", *flags.split(), "-fopenmp", "-shared", "-fPIC", str(source), "-o", str(path)]
        subprocess.run(command, check=True, timeout=120)
        return ctypes.CDLL(str(path))


@dataclasses.dataclass(frozen=True)
class Program:
    """A program that is built here from its public source.

    Attributes
    ----------
    source : str
        The folder of its source in a folder of contenders.
    files : str
        What is compiled, as patterns below `source`, in this order.
    flags : str
        In addition to FLAGS.
    changes : dict
        By file: a pattern, and the text in its place.
    """

    name: str
    source: str
    files: str
    flags: str = ""
    changes: dict = dataclasses.field(default_factory=dict)

    def built(self, folder):
        """The program, in `folder`; None where its source or a compiler is missing or does not fit."""
        source = next((root / self.source for root in roots() if (root / self.source).is_dir()), None)
        files = self.files.split()
        compiler = {".cpp": "mpicxx", "F]90": "gfortran"}.get(files[0][-4:], "mpicc")
        places = [Path(sys.executable).parent, *(root / "bin" for root in roots())]
        path = shutil.which(compiler, path=":".join(map(str, places))) or shutil.which(compiler)
        if source is None or path is None:
            return skipped(self.name, f"no {compiler}, or no {self.source} in {VARIABLE}=FOLDER")
        here = Path(folder) / self.source.replace("/", "-")
        shutil.copytree(source, here)
        for file, (pattern, text) in self.changes.items():
            found, times = re.subn(pattern, text, (here / file).read_text())
            if not times:
                return skipped(self.name, f"another version of {file}")
            (here / file).write_text(found)
        files = [str(file) for pattern in files for file in sorted(here.glob(pattern))]
        command = [path, *FLAGS, f"-I{here}", *files, *self.flags.split(), "-lm", "-o", str(here / "program")]
        return here / "program" if compiles(self.name, command, here) else None


def compiles(name, command, folder):
    """Whether a compiler's command works; says why it does not."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        skipped(name, f"it does not compile: {next((x for x in done.stderr.splitlines() if 'error' in x), '?')}")
    return not done.returncode
