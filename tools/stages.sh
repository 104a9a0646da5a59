# The environment of set-up and tests, and signs of life: what is being done, and when it began. To be sourced.

# use PYTHON: its path as $python, and its folder first in PATH.
use() {
    python=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
    export PATH="$(dirname "$python"):$PATH"
}

stage() { printf '[%4d s] %s\n' "$SECONDS" "$1"; }

# compiling LOG COMMAND...: runs a command, its output in a file; shows each tenth of what Ninja builds, and the end
# of the output if it fails.
compiling() {
    local log=$1 line shown=0
    shift
    "$@" 2>&1 | tee "$log" | while IFS= read -r line; do
        [[ $line =~ ^\ *\[([0-9]+)/([0-9]+)\] ]] || continue
        if ((BASH_REMATCH[1] == BASH_REMATCH[2] || 10 * BASH_REMATCH[1] >= shown + BASH_REMATCH[2])); then
            shown=$((10 * BASH_REMATCH[1]))
            stage "  ${BASH_REMATCH[1]} of ${BASH_REMATCH[2]} files"
        fi
    done || {
        tail -60 "$log" >&2
        echo "failed: $* (its output: $log)" >&2
        return 1
    }
}

# core_folder PYTHON: where the compiled core of that Python is built.
core_folder() {
    local tag
    tag=$("$1" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
    ls -d "$PWD/build/$tag-$tag"-* 2>/dev/null | head -1
}

# cpp_build FOLDER TYPE FLAGS LIBRARY: the C++ tests and examples, of a built library or of none; uses $python.
cpp_build() {
    mkdir -p build
    cmake -S . -B "$1" -G Ninja -DPython_EXECUTABLE="$python" -DTILEWAVE_TESTS=ON -DTILEWAVE_EXAMPLES=ON \
        -DCMAKE_BUILD_TYPE="$2" -DCMAKE_CXX_FLAGS="$3" -DTILEWAVE_BUILT="$4" \
        -DCMAKE_COMPILE_WARNING_AS_ERROR=ON >"$1.log" 2>&1 || { cat "$1.log"; return 1; }
    stage "building the C++ tests in $1"
    compiling "$1.log" cmake --build "$1"
}

# cpp_run FOLDER: runs them in four processes at once.
cpp_run() {
    local part failed=0 parts=()
    stage "running the C++ tests in $1"
    export TILEWAVE_BLAS
    TILEWAVE_BLAS=$("$python" -c 'from tilewave.linalg.blas import blas; print(blas().path)')
    for part in 0 1 2 3; do
        GTEST_TOTAL_SHARDS=4 GTEST_SHARD_INDEX=$part timeout 1200 \
            "$1/tests/cpp/tilewave_tests" --gtest_brief=1 >"$1-$part.log" 2>&1 &
        parts+=($!)
    done
    for part in 0 1 2 3; do
        wait "${parts[part]}" || { failed=1; tail -100 "$1-$part.log"; }
        grep -h '^\[==========\]' "$1-$part.log" | tail -1
    done
    return $failed
}
