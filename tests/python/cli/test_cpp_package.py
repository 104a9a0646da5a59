"""A program in C++ is built against the installed package alone: `tilewave --cmake-dir`, `find_package(tilewave)`."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tilewave.cli.commands import app

BIN = Path(sys.executable).parent
PROGRAM = """
#include <cstdio>
#include "tilewave/tilewave.hpp"

int main() {
    tilewave::Context context(tilewave::make_mpi_transport(), 1);
    tilewave::Field<double> A(context, {100}, [](const tilewave::Index& i) { return i[0] == 0 ? 0.0 : -1.0; });
    tilewave::run(context, {}, [](auto a) { return a(-1) + 1; }, tilewave::writes<tilewave::reads({-1})>(A));
    const double sum = A.sum();
    if (context.rank() == 0) std::printf("%d ranks: %g", context.size(), sum);
}
"""
CMAKE = """
cmake_minimum_required(VERSION 3.24)
project(alone LANGUAGES CXX)
find_package(tilewave 0.1 REQUIRED)
add_executable(alone alone.cpp)
target_link_libraries(alone PRIVATE tilewave::tilewave)
"""


def said(*command, **options):
    """What a command prints; where it fails, its output is part of the error."""
    done = subprocess.run([str(w) for w in command], capture_output=True, text=True, timeout=300, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def cmake_dir():
    shown = CliRunner().invoke(app, ["--cmake-dir"])
    assert shown.exit_code == 0
    return Path(shown.output.strip())


def test_package_has_what_programs_include():
    folder = cmake_dir()
    assert (folder / "tilewaveConfig.cmake").exists()
    cpp = folder.parents[2]
    assert (cpp / "lib" / "libtilewave.a").stat().st_size > 1e6
    root = Path(__file__).resolve().parents[3]
    headers = sorted((root / "include" / "tilewave").rglob("*.hpp"))
    assert headers
    for path in headers:
        assert (cpp / "include" / path.relative_to(root / "include")).read_bytes() == path.read_bytes()


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_program_of_the_installed_package(tmp_path):
    (tmp_path / "alone.cpp").write_text(PROGRAM)
    (tmp_path / "CMakeLists.txt").write_text(CMAKE)
    build = tmp_path / "build"
    cmake = shutil.which("cmake", path=BIN) or "cmake"
    said(cmake, "-S", tmp_path, "-B", build, f"-DCMAKE_PREFIX_PATH={cmake_dir()}", "-DCMAKE_BUILD_TYPE=None")
    said(cmake, "--build", build)
    assert said(BIN / "mpiexec", "-n", "2", build / "alone", cwd=tmp_path) == "2 ranks: 4950"
