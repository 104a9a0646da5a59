#!/usr/bin/env bash
# Lint and tests of one folder, as in make check FOLDER=linalg: of src, python/tilewave and tests, wherever it occurs.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/stages.sh
folder=${1:-}
use "${PYTHON:-.venv/bin/python}"

mapfile -t folders < <(find src python/tilewave tests tools -type d -name "${folder:-/}" -not -path '*/__pycache__*')
if [ ${#folders[@]} = 0 ]; then
    echo "make check FOLDER=$folder: no such folder; allowed: $(find src python/tilewave tests -mindepth 1 -type d \
        -not -name __pycache__ -printf '%f\n' | sort -u | paste -sd ' ')" >&2
    exit 2
fi
mapfile -t sources < <(find "${folders[@]}" -name '*.[ch]pp'; ls "bindings/$folder.cpp" 2>/dev/null || true)
mapfile -t tests < <(printf '%s\n' "${folders[@]}" | grep -E '^tests/(python|mpi|cluster|campaign)' || true
    ls tests/mpi/test_"$folder"*.py 2>/dev/null || true)

stage "lint"
"$python" tools/layers.py
"$python" tools/imports.py
ruff check --quiet "${folders[@]}"
[ ${#sources[@]} = 0 ] || clang-format --dry-run -Werror "${sources[@]}"
if [ -d "tests/cpp/$folder" ]; then
    cpp_build build/cpp None -Og "$(ls "$(core_folder "$python")/libtilewave.a")"
    suites=$(grep -ohP '^TEST(_[FP])?\(\K\w+' "tests/cpp/$folder"/*.cpp | sort -u |
        sed 's/.*/&.*:*\/&.*/' | paste -sd :)
    stage "running the C++ tests of $folder"
    build/cpp/tests/cpp/tilewave_tests --gtest_brief=1 --gtest_filter="$suites"
fi
if [ ${#tests[@]} != 0 ]; then
    stage "running the Python tests of $folder"
    "$python" -m pytest -q -n 3 --mpi no "${tests[@]}" || [ $? = 5 ] # 5: none
    "$python" -m pytest -q --mpi only "${tests[@]}" || [ $? = 5 ]
fi
