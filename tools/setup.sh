#!/usr/bin/env bash
# Makes a virtual environment, and builds and installs Tilewave into it, editable, with what tests need
# (TILEWAVE_EXTRAS: other lists of pyproject.toml, or none).
# Needs Python 3.10 or newer with venv, g++ and make; everything else comes from the package index.
# setup.sh VENV [OPTIONS of pip]; CXX and CXXFLAGS name another compiler and its flags, and
# TILEWAVE_STRICT=1 makes its warnings errors.
set -euo pipefail
venv=$1
shift
python=${PYTHON:-python3}
cd "$(dirname "$0")/.."
source tools/stages.sh

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || {
    echo "tilewave needs Python 3.10 or newer; $python is $("$python" --version)" >&2
    exit 1
}
if [ ! -x "$venv/bin/python" ]; then
    stage "making the virtual environment $venv"
    "$python" -m venv "$venv"
fi
pip=("$venv/bin/python" -m pip --disable-pip-version-check)

# Debian's python3.11-venv comes without Python.h. Fetch and unpack the headers' package beside
# the environment: that needs no root and leaves the system as it is.
headers=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
defines=()
if [ ! -e "$headers/Python.h" ]; then
    version=$("$venv/bin/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    root=$PWD/$venv/headers
    if [ ! -e "$root/usr/include/python$version/Python.h" ]; then
        echo "no Python.h for Python $version: fetching the package libpython$version-dev"
        mkdir -p "$root"
        (cd "$root" && { apt-get download -qq "libpython$version-dev" 2>/dev/null ||
            { apt-get update -qq && apt-get download -qq "libpython$version-dev"; }; } &&
            dpkg-deb -x libpython*.deb . && rm -f libpython*.deb) || {
            echo "Python.h is missing and could not be fetched; install it: apt install python$version-dev" >&2
            exit 1
        }
    fi
    export CPLUS_INCLUDE_PATH=$root/usr/include C_INCLUDE_PATH=$root/usr/include
    defines=("--config-settings=cmake.define.Python_INCLUDE_DIR=$root/usr/include/python$version")
fi

# The build's requirements first, so that the build folder can be used again (no isolation).
stage "fetching what the build needs: CMake, Ninja, nanobind, MPICH"
"${pip[@]}" install --quiet "scikit-build-core>=0.12" "nanobind>=2.12" "mpich>=5.0,<6" "cmake>=3.24" "ninja" \
    "typing_extensions"
stage "building the compiled core, about 3 minutes on two free cores the first time; installing NumPy, llvmlite, ..."
mkdir -p build
# Fetched and installed while the core is compiled.
tools/packages.sh "$venv" ${TILEWAVE_EXTRAS-test} &
# Editable: Python's sources stay where they are, and only the compiled core is installed.
PATH="$PWD/$venv/bin:$PATH" compiling build/core.log "${pip[@]}" install --verbose --no-build-isolation --no-deps \
    "${defines[@]}" ${TILEWAVE_STRICT:+"--config-settings=cmake.define.CMAKE_COMPILE_WARNING_AS_ERROR=ON"} \
    ${TILEWAVE_MPI:+"--config-settings=cmake.define.TILEWAVE_MPI=$TILEWAVE_MPI"} "$@" --editable .
wait $!
stage "$venv is ready"
