"""Which MPI a process loads, and which mpiexec belongs to it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from launches import PYTHON, ended

from tilewave.context import mpi_library
from tilewave.errors import ConfigError
from tilewave.launch import launch, launchers, which_mpi
from tilewave.launch.which_mpi import MPICH, OPEN, STANDARD

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def unasked(monkeypatch):
    for name in (which_mpi.SETTING, "MPI4PY_LIBMPI", "TILEWAVE_MPIEXEC", "OMPI_LIBDIR_LOC", "OPAL_PREFIX"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def files(tmp_path):
    """Makes files below a folder: libraries with Open MPI's names in them, programs that tell what they are."""

    def make(*paths):
        for path in paths:
            file = tmp_path / path
            file.parent.mkdir(parents=True, exist_ok=True)
            open_ = "open" in path or path.endswith(OPEN)
            if file.parent.name == "bin":
                file.write_text(f"#!/bin/sh\necho {'Open MPI' if open_ else 'HYDRA'}\n")
                file.chmod(0o755)
            else:
                file.write_bytes(b"elf\0ompi_mpi_byte\0" if open_ else b"elf\0MPI_Init\0")
        return [str(tmp_path / path) for path in paths]

    return make


def test_an_empty_file_is_no_library(tmp_path, monkeypatch):
    (tmp_path / "libmpi.so").touch()
    monkeypatch.setenv(which_mpi.SETTING, str(tmp_path / "libmpi.so"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(launch.LaunchError, match="no mpiexec that belongs to"):
        launch.find_mpiexec()
    with pytest.raises(ConfigError, match="cannot be loaded"):
        which_mpi.load_all(str(tmp_path / "libmpi.so"))


# --- the choice -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given, held, mpi4py, by, found",
    [
        (None, None, None, None, STANDARD),
        (None, None, "any", None, MPICH),  # a wheel of mpi4py
        (None, None, None, "PMI", STANDARD),
        (None, None, "any", "PMI", MPICH),
        (None, None, "any", "PMIx", OPEN),
        (None, None, "site/" + OPEN, None, "site/" + OPEN),
        (None, None, "site/" + OPEN, "PMIx", "site/" + OPEN),
        (None, None, "site/" + OPEN, "PMI", MPICH),
        (None, None, "site/" + MPICH, "PMIx", OPEN),
        (None, "site/" + MPICH, "any", "PMIx", "site/" + MPICH),  # what is loaded decides
        ("site/" + OPEN, None, "any", "PMI", "site/" + OPEN),
        ("site/" + OPEN, "site/" + OPEN, "any", None, "site/" + OPEN),
    ],
)
def test_a_process_has_one_mpi(monkeypatch, files, given, held, mpi4py, by, found):
    paths = dict(zip(names := (STANDARD, MPICH, OPEN, "site/" + OPEN, "site/" + MPICH), files(*names)))
    monkeypatch.setattr(which_mpi, "given", lambda: paths.get(given))
    monkeypatch.setattr(which_mpi, "loaded_mpi", lambda: paths.get(held))
    monkeypatch.setattr(which_mpi, "of_mpi4py", lambda: paths.get(mpi4py))
    monkeypatch.setattr(which_mpi, "of_launcher", lambda: paths[OPEN])
    monkeypatch.setattr(which_mpi, "brought", lambda names, folders: paths[names[0]])
    monkeypatch.setattr(launchers, "connected_by", lambda: by)
    monkeypatch.setattr(mpi_library.importlib.util, "find_spec", lambda name: mpi4py)
    assert mpi_library._choose() == paths[found]


def test_another_mpi_than_the_loaded_one_is_refused(monkeypatch, files):
    asked, held = files("asked/" + OPEN, "held/" + OPEN)
    monkeypatch.setattr(which_mpi, "given", lambda: asked)
    monkeypatch.setattr(which_mpi, "loaded_mpi", lambda: held)
    with pytest.raises(ConfigError, match=f"TILEWAVE_LIBMPI asks for {asked}, and this process has loaded {held}; set"):
        mpi_library._choose()


def test_no_mpi_at_all(monkeypatch):
    for name in ("given", "loaded_mpi", "of_mpi4py", "of_launcher"):
        monkeypatch.setattr(which_mpi, name, lambda: None)
    monkeypatch.setattr(which_mpi, "brought", lambda names, folders: None)
    with pytest.raises(ConfigError, match="there is no MPI in .*; install the Python package 'mpich', or set"):
        mpi_library._choose()


# --- what there is ----------------------------------------------------------------------------------------------------


def test_what_the_user_asks_for(monkeypatch, files):
    (path,) = files("lib/libmpi_site.so")
    assert which_mpi.given() is None
    monkeypatch.setenv("MPI4PY_LIBMPI", f"libmpi.so{os.pathsep}/no/libmpi.so{os.pathsep}{path}")
    assert which_mpi.given() == path
    monkeypatch.setenv(which_mpi.SETTING, os.path.relpath(path))
    assert which_mpi.given() == path
    monkeypatch.setattr(which_mpi, "find", lambda kind: f"/found/{kind}")
    monkeypatch.setenv(which_mpi.SETTING, "openmpi")
    assert which_mpi.given() == "/found/openmpi"
    monkeypatch.setattr(which_mpi, "find", lambda kind: None)
    with pytest.raises(ConfigError, match="TILEWAVE_LIBMPI is 'openmpi', and there is no libmpi.so.40 in"):
        which_mpi.given()
    for wrong in ("/no/libmpi.so", "libmpi.so.40", "lam"):
        monkeypatch.setenv(which_mpi.SETTING, wrong)
        with pytest.raises(ConfigError, match=f"is '{wrong}', which is no file; allowed: .* words mpich, openmpi"):
            which_mpi.given()


def test_libraries_are_found_beside_programs_and_launchers(monkeypatch, files, tmp_path):
    program, library, inner = files("site/bin/mpirun.openmpi", "site/lib/x86_64-linux-gnu/" + OPEN, "job/" + OPEN)
    monkeypatch.setattr(which_mpi.sys, "prefix", str(tmp_path / "empty"))
    monkeypatch.setenv("PATH", os.path.dirname(program))
    assert which_mpi.find("openmpi") == library == which_mpi.of_launcher()
    monkeypatch.setenv("OMPI_LIBDIR_LOC", os.path.dirname(inner))
    assert which_mpi.of_launcher() == inner


def test_the_launcher_is_looked_for_among_the_parents(files, tmp_path):
    """As a site's, which is not in PATH, with a shell between it and the rank."""
    (library,) = files("opt/lib64/" + OPEN)
    (tmp_path / "opt/bin").mkdir()
    (tmp_path / "opt/bin/orterun").symlink_to(sys.executable)
    ask = "from tilewave.launch import which_mpi; print(which_mpi.of_launcher())"
    copy = tmp_path / "opt/bin/prterun"
    copy.write_bytes(Path("/bin/sh").read_bytes())
    copy.chmod(0o755)
    done = ended(copy, "-c", f"'{PYTHON}' -c '{ask}'; :", env={"PATH": "/nowhere"})
    assert done.stdout.strip() == library, done.stderr


def test_what_is_loaded_without_the_interfaces_to_other_languages(monkeypatch):
    names = ("libmpi_cxx.so.40", "libmpi_mpifh.so.40", "libmpichfort.so.12", "libmpi_usempif08.so.40")
    monkeypatch.setattr(which_mpi, "loaded", lambda: {f"/lib/{name}" for name in names})
    assert which_mpi.loaded_mpi() is None
    for name in (OPEN, MPICH, STANDARD, "libmpich.so.12.2.2", "libmpi_gnu_91.so.12"):
        monkeypatch.setattr(which_mpi, "loaded", lambda: {f"/lib/{n}" for n in (*names, name)})
        assert which_mpi.loaded_mpi() == f"/lib/{name}"


def test_mpiexec_that_belongs_to_a_library(monkeypatch, files, tmp_path):
    monkeypatch.setenv("PATH", "")
    ours, theirs = files(f"both/lib/{MPICH}", f"both/lib/{OPEN}")
    assert which_mpi.mpiexec_of(ours, launch.is_open_mpi) is None
    hydra, mpirun = files("both/bin/mpiexec", "both/bin/mpirun.openmpi")
    assert which_mpi.mpiexec_of(ours, launch.is_open_mpi) == hydra
    assert which_mpi.mpiexec_of(theirs, launch.is_open_mpi) == mpirun
    inner, link = files(f"debian/lib/x86/openmpi/lib/{OPEN}", "debian/bin/mpirun.openmpi")
    (tmp_path / OPEN).symlink_to(inner)
    assert which_mpi.mpiexec_of(str(tmp_path / OPEN), launch.is_open_mpi) == link
    monkeypatch.setenv(which_mpi.SETTING, theirs)
    assert launch.find_mpiexec() == mpirun
    os.remove(mpirun)
    with pytest.raises(launch.LaunchError, match=f"no mpiexec that belongs to {theirs}.*set TILEWAVE_MPIEXEC"):
        launch.find_mpiexec()
    monkeypatch.setenv(which_mpi.SETTING, "/no")
    with pytest.raises(launch.LaunchError, match="TILEWAVE_LIBMPI is '/no', which is no file"):
        launch.find_mpiexec()


# --- binary interfaces ------------------------------------------------------------------------------------------------


def test_the_interface_is_recognised_and_what_is_no_mpi_refused():
    ask = """
import sys
from tilewave.context import mpi_library
from tilewave.errors import ConfigError
from tilewave.launch import which_mpi
try:
    print(mpi_library._abi_of(which_mpi.load_all(sys.argv[1]), sys.argv[1]))
except ConfigError as error:
    print(error)
"""
    library = lambda name: f"{sys.prefix}/lib/{name}"
    libc = next(path for path in which_mpi.loaded("libc"))
    for path, words in (
        (library(STANDARD), "abi\n"),
        (library(MPICH), "mpich\n"),
        (libc, "is no MPI library that Tilewave knows: allowed are Open MPI 4 and 5, MPICH"),
        (__file__, "cannot be loaded: "),
    ):
        assert words in ended(PYTHON, "-c", ask, path).stdout


@pytest.mark.parametrize("abi", ["abi", "mpich", "openmpi"])
def test_transports_need_no_more_than_older_mpis_have(abi):
    """What Open MPI 4.1 has is what its header here declares; nothing is taken from a library that is linked."""
    transport = Path(mpi_library._core.__file__).with_name(f"_mpi_{abi}.so")
    if not transport.exists():
        pytest.skip("built for the site's MPI")
    declared = (ROOT / "src/transport/openmpi/mpi.h").read_text()
    symbols = subprocess.run(["nm", "-D", "-u", transport], capture_output=True, text=True, check=True).stdout.split()
    named = {name for name in symbols if name.startswith(("MPI_", "ompi_", "OMPI_"))}
    assert len(named) >= 40 and all(name in declared for name in named - {"MPI_Comm_fromint"})
    needed = subprocess.run(["readelf", "-d", transport], capture_output=True, text=True, check=True).stdout
    assert "libmpi" not in needed and "libc.so" in needed
