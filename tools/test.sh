#!/usr/bin/env bash
# All tests: include layers, C++ (GoogleTest), Python, MPI, cluster. --long adds the long runs.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/stages.sh
use "${PYTHON:-.venv/bin/python}"
long=${1:-}
unset PYTHONDONTWRITEBYTECODE # else each of many processes compiles what it imports

PYTHON=$python tools/lint.sh ${long:---quick}

# system_packages NAME...: installed where that is possible.
system_packages() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 0
    local install="apt-get install -y -qq --no-install-recommends $*"
    { $install || { apt-get update -qq && $install; }; } >/dev/null 2>&1 || true
}
# GoogleTest is a system package; without it the C++ tests are left out.
have_gtest() { [ -e /usr/include/gtest/gtest.h ] && ls /usr/lib/*/libgtest.a >/dev/null 2>&1; }
have_gtest || system_packages libgtest-dev
cpp_tests() { cpp_build "$@" && cpp_run "$1"; }
mkdir -p build
if have_gtest; then
    # The library as it was installed, where its build is there.
    cpp_tests build/cpp None "-Og" "$(ls "$(core_folder "$python")/libtilewave.a" 2>/dev/null)"
    if [ "$long" = --long ]; then
        TILEWAVE_TEST_MANY_RANKS=4096 timeout 600 \
            build/cpp/tests/cpp/tilewave_tests --gtest_filter='Scale*' --gtest_brief=1
        seed=$((RANDOM * 100000))
        stage "simulated runs, seeds $seed to $((seed + 99999))" # TILEWAVE_SEEDS=SEED:1 repeats one
        for part in 0 1; do
            TILEWAVE_SEEDS=$((seed + part * 50000)):50000 timeout 3600 build/cpp/tests/cpp/tilewave_tests \
                --gtest_brief=1 --gtest_filter='Simulation.*' >"build/simulation-$part.log" 2>&1 &
            simulations[part]=$!
        done
        for part in 0 1; do
            wait "${simulations[part]}" || { tail -100 "build/simulation-$part.log"; exit 1; }
        done
        # GCC takes members of variants for uninitialized where it adds the checks.
        sanitized="-Wno-maybe-uninitialized -fsanitize"
        cpp_tests build/asan RelWithDebInfo "$sanitized=address,undefined -fno-sanitize-recover=undefined" ""
        cpp_tests build/tsan RelWithDebInfo "$sanitized=thread" ""
    fi
else
    echo "C++ tests skipped: GoogleTest is missing; get it with: apt install libgtest-dev"
fi

# Other MPIs than the package's: Debian's packages, where they can be had.
command -v mpirun.openmpi >/dev/null || system_packages openmpi-bin mpich

# The library as it is built with the site's MPI, here Open MPI.
if [ "$long" = --long ] && ls /usr/lib/*/openmpi/include/mpi.h >/dev/null 2>&1; then
    cmake -S . -B build/openmpi -G Ninja -DTILEWAVE_MPI=system -DTILEWAVE_EXAMPLES=ON \
        -DPython_EXECUTABLE="$python" >build/openmpi.log 2>&1
    cmake --build build/openmpi >>build/openmpi.log 2>&1 || { tail -50 build/openmpi.log; exit 1; }
    for ranks in 1 2 3; do
        (cd build/openmpi && OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 120 \
            mpirun.openmpi -n "$ranks" --oversubscribe examples/11_nest_in_cpp 2) | tee build/openmpi.out
        grep -q 'last value     8.999999' build/openmpi.out
    done
elif [ "$long" = --long ]; then
    echo "the build with the site's MPI is skipped: get Open MPI with: apt install openmpi-bin libopenmpi-dev"
fi

# With a second compiler, the clang of a wheel: another environment, a sample of the Python tests. Debian's
# GoogleTest is of another C++ library than clang's.
if [ "$long" = --long ]; then
    stage "clang: the core, a sample of the Python tests"
    "$python" -m pip --disable-pip-version-check install --quiet ziglang==0.17.1
    clang=$PWD/build/clang
    export CXX="$python -m ziglang c++ -target $(uname -m)-linux-gnu.2.28"
    # Debian's Python.h includes a header by its path below /usr/include, where clang for another glibc does not look.
    export CXXFLAGS="-idirafter /usr/include"
    PYTHON=$python tools/setup.sh build/clang/venv "--config-settings=build-dir=$clang/core"
    unset CXX CXXFLAGS
    PATH=$clang/venv/bin:$PATH timeout 300 tilewave run -n 2 examples/02_time_steps.py
    PATH=$clang/venv/bin:$PATH python -m pytest -n 3 --mpi no tests/python tests/mpi
    PATH=$clang/venv/bin:$PATH python -m pytest --mpi only tests/mpi
fi

# What runs in one process on all cores at once, two more than the usual two since some only wait: tests of a file in
# one process as far as possible, which share kernels and time. What has several ranks has the cores for itself.
stage "tests in one process, ranks as threads"
"$python" -m pytest ${long:+--long} -n 4 --dist worksteal --mpi no tests/python tests/mpi
# No result of a test depends on what is measured: the clock of a machine on which other programs run.
if [ "$long" = --long ]; then
    stage "the same with the clock of a busy machine"
    cc -O2 -shared -fPIC -o build/busy_clock.so tests/busy_clock.c
    LD_PRELOAD=$PWD/build/busy_clock.so "$python" -m pytest -n 4 --dist worksteal --mpi no tests/python tests/mpi
fi
stage "tests under mpiexec, and on several hosts in a box"
"$python" -m pytest ${long:+--long} --mpi only tests/mpi
stage "other MPIs"
"$python" tools/other_mpis.py $long
"$python" -m pytest ${long:+--long} tests/campaign tests/cluster
