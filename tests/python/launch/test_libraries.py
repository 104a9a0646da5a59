"""Which libraries a process loads, whatever LD_LIBRARY_PATH says; what importing the package leaves alone."""

import shutil
import sys

import pytest
from launches import PYTHON, TILEWAVE, ended

from tilewave.launch import which_mpi


ALL = "libfabric.so.1 libucm.so.0 libucp.so.0 libucs.so.0 libuct.so.0 libmpi.so.12 libmpi_abi.so.1"


@pytest.fixture(params=[ALL, "libucm.so.0", "libucp.so.0 libucs.so.0", "libfabric.so.1 libucp.so.0 libmpi.so.12"])
def old_libraries(tmp_path, request):
    """A folder with libraries of the names of MPICH's, without what it needs of them."""
    if not shutil.which("g++"):
        pytest.skip("no g++ here")
    folder = tmp_path / "old"
    folder.mkdir()
    (tmp_path / "old.cpp").write_text('extern "C" int of_another_version() { return 0; }\n')
    for name in request.param.split():
        ended("g++", "-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", folder / name, tmp_path / "old.cpp", check=True)
    return folder


@pytest.mark.parametrize("library", [which_mpi.STANDARD, which_mpi.MPICH])
def test_the_libraries_that_came_with_mpi_are_loaded(old_libraries, tmp_path, library):
    script = tmp_path / "script.py"
    script.write_text(
        "import tilewave as tw\n"
        "from tilewave.launch.which_mpi import loaded\n"
        "tw.print(tw.size, *loaded('libfabric|libuc[mpst]|libmpi'))\n"
    )
    env = {"LD_LIBRARY_PATH": str(old_libraries), "TILEWAVE_LIBMPI": f"{sys.prefix}/lib/{library}"}
    done = ended(*TILEWAVE, "run", "-n", "2", script, env=env)
    assert done.returncode == 0 and done.stdout.startswith("2 "), done.stdout + done.stderr
    assert str(old_libraries) not in done.stdout and "/libfabric.so.1" in done.stdout


def test_an_import_changes_nothing_of_the_process():
    program = """
import atexit, os, signal, sys
atexit_, exit_, hook, interrupt = atexit.register, os._exit, sys.excepthook, signal.getsignal(signal.SIGINT)
audited = []
sys.addaudithook(lambda event, _: audited.append(event) if event == "sys.addaudithook" else None)
import tilewave
assert (atexit.register, os._exit, sys.excepthook) == (atexit_, exit_, hook)
assert signal.getsignal(signal.SIGINT) is interrupt and not audited
"""
    ended(PYTHON, "-c", program, check=True)


def test_a_rank_that_fails_by_itself_does_not_wait_under_plain_mpiexec(launch_tool, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import tilewave as tw\nA = tw.field((6, 6), init=1.0)\nif tw.rank == 1: raise KeyError('of one')\ntw.sum(A)\n"
    )
    done = ended(*launch_tool.mpiexec_command(2, [PYTHON, str(script)]))
    assert done.returncode != 0 and "KeyError: 'of one'" in done.stderr


def test_an_intercommunicator_is_refused(launch_tool, tmp_path):
    pytest.importorskip("mpi4py")
    script = tmp_path / "script.py"
    script.write_text(
        "from mpi4py import MPI\nimport tilewave as tw\nall = MPI.COMM_WORLD\nhalf = all.Split(all.rank)\n"
        "try: tw.Context(half.Create_intercomm(0, all, 1 - all.rank))\n"
        "except tw.ConfigError as error: print(error, flush=True)\n"
    )
    done = ended(*launch_tool.mpiexec_command(2, [PYTHON, str(script)]))
    assert done.returncode == 0 and done.stdout.count("given an intercommunicator; allowed: ") == 2, done.stderr
