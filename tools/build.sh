#!/usr/bin/env bash
# Compiles what has changed of the core, in the folder that tools/setup.sh made, and installs it in the environment.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/stages.sh
use "${PYTHON:-.venv/bin/python}"
folder=$(core_folder "$python")
compiling build/core.log cmake --build "$folder"
packages=$("$python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
cmake --install "$folder" --prefix "$packages" >/dev/null
# Python need not compile sources at each start, even where it may not write there (PYTHONDONTWRITEBYTECODE).
"$python" -m compileall -q -j 0 -x /tests/ python/tilewave "$packages"/{numpy,llvmlite}
# Type checkers look for the stubs of the compiled core where Python's sources are.
ln -sfn "$packages/tilewave/_core" python/tilewave/_core
