# Signs of life for set-up and tests: what is being done, and when it began. To be sourced.

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
