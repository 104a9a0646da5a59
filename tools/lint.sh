#!/usr/bin/env bash
# Checks the sources: who may include and import whom, ruff, clang-format, types, clang-tidy of what changed since it
# last ran. --fix formats what can be formatted; --quick leaves clang-tidy out.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
bin=$(dirname "$python")
mapfile -t cpp < <(find include src bindings tests/cpp examples -name '*.cpp' -o -name '*.hpp')

if [ "${1:-}" = --fix ]; then
    "$bin/ruff" format python bench tools
    "$bin/ruff" check --fix .
    "$bin/clang-format" -i "${cpp[@]}"
fi
"$python" tools/layers.py
"$python" tools/imports.py
"$bin/ruff" check --quiet .
"$bin/ruff" format --quiet --check python bench tools || { echo "run tools/lint.sh --fix" >&2; exit 1; }
"$bin/clang-format" --dry-run -Werror "${cpp[@]}" || { echo "run tools/lint.sh --fix" >&2; exit 1; }
"$python" tools/known_types.py
if [ "${1:-}" != --quick ]; then
    [ -x "$bin/clang-tidy" ] || "$python" -m pip --disable-pip-version-check install --quiet clang-tidy==23.1.4
    "$python" tools/tidy.py
fi
echo "lint: fine"
