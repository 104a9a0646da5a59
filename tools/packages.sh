#!/usr/bin/env bash
# Installs what Tilewave needs, and lists of pyproject.toml beyond that: packages.sh VENV [LIST...]. Those of tests leave
# the mark VENV/tested.
set -euo pipefail
venv=$1
shift
cd "$(dirname "$0")/.."
mapfile -t requirements < <("$venv/bin/python" - "$@" <<'END'
import sys

try:
    import tomllib
except ImportError:  # Python 3.10
    from pip._vendor import tomli as tomllib
with open("pyproject.toml", "rb") as file:
    project = tomllib.load(file)["project"]
more = [each for name in sys.argv[1:] for each in project["optional-dependencies"][name]]
print(*project["dependencies"], *more, sep="\n")
END
)
"$venv/bin/python" -m pip --disable-pip-version-check install --quiet --no-compile "${requirements[@]}"
[[ " $* " != *" test "* ]] || touch "$venv/tested"
