#!/usr/bin/env bash
# Builds the site into build/site, in an environment of its own next to the one that has the package: build/docs-venv.
# A warning is an error. Links to other sites are listed in build/site-links, not followed.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
case "$python" in /*) ;; *) python=$PWD/$python ;; esac
venv=$PWD/build/docs-venv
export PATH="$(dirname "$python"):$PATH"

if [ ! -e "$venv/installed" ] || [ pyproject.toml -nt "$venv/installed" ]; then
    mkdir -p build
    "$python" -m venv "$venv"
    # What the package needs, and the package as it is edited, are those of the other environment.
    "$venv/bin/python" - "$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" <<'END'
import sys, sysconfig
with open(sysconfig.get_path("purelib") + "/package.pth", "w") as file:
    file.write(f"import site; site.addsitedir({sys.argv[1]!r})\n")
END
    mapfile -t requirements < <("$python" - <<'END'
try:
    import tomllib
except ImportError:  # Python 3.10
    from pip._vendor import tomli as tomllib
with open("pyproject.toml", "rb") as file:
    print(*tomllib.load(file)["project"]["optional-dependencies"]["docs"], sep="\n")
END
    )
    "$venv/bin/python" -m pip --disable-pip-version-check install --quiet "${requirements[@]}"
    touch "$venv/installed"
fi
"$venv/bin/python" -m sphinx -W --keep-going --quiet -b html "$@" docs build/site
grep -rhoE '(href|src)="https?://[^"#]+' build/site --include='*.html' | sed 's/^[a-z]*="//' | sort -u >build/site-links
echo "site: build/site/index.html; links to other sites, which are not followed: build/site-links"
