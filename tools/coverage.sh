#!/usr/bin/env bash
# What share of the lines and branches the tests reach, folder by folder: about half an hour on two free cores.
# Builds into build/coverage, in a virtual environment there.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/stages.sh
folder=$PWD/build/coverage
flags="-O1 --coverage -fprofile-update=atomic"
mkdir -p "$folder"
CXXFLAGS=$flags tools/setup.sh build/coverage/venv "--config-settings=build-dir=$folder/core" \
    --config-settings=cmake.build-type=None
python=$folder/venv/bin/python
export PATH="$folder/venv/bin:$PATH"
"$python" -m pip --disable-pip-version-check install --quiet coverage==7.17.5 gcovr==8.8
find "$folder" -name '*.gcda' -delete
rm -f "$folder"/python*

cpp_build build/coverage/cpp None "$flags" "$folder/core/libtilewave.a"
cpp_run build/coverage/cpp
# Also of the processes that tests start: coverage hands its settings on.
export COVERAGE_FILE=$folder/python COVERAGE_PROCESS_START=$PWD/pyproject.toml TILEWAVE_TEST_RUN=${TILEWAVE_TEST_RUN:-0}
stage "tests in one process, ranks as threads"
"$python" -m coverage run -m pytest -q -n 3 --mpi no tests/python tests/mpi
stage "tests under mpiexec"
"$python" -m coverage run -m pytest -q --mpi only tests/mpi
stage "counting"
"$python" -m coverage combine --quiet
"$python" -m coverage json --quiet -o "$folder/python.json"
gcovr --root . --filter 'src/' --filter 'include/' --exclude-throw-branches --exclude-unreachable-branches \
    --gcov-ignore-parse-errors=negative_hits.warn --merge-mode-functions=separate -j 2 \
    --json-summary "$folder/cpp.json" "$folder" >/dev/null
"$python" tools/coverage.py "$folder/cpp.json" "$folder/python.json"
