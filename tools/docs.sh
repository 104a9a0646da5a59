#!/usr/bin/env bash
# Builds the site into build/site, in an environment of its own next to the one that has the package: build/docs-venv.
# A warning is an error. Links to other sites are listed in build/site-links, not followed.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/stages.sh
use "${PYTHON:-.venv/bin/python}"
venv=build/docs-venv

if [ ! -e "$venv/installed" ] || [ pyproject.toml -nt "$venv/installed" ]; then
    mkdir -p build
    "$python" -m venv "$venv"
    # What the package needs, and the package as it is edited, are those of the other environment.
    echo "import site; site.addsitedir('$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')')" \
        >"$(echo "$venv"/lib/python3*/site-packages)/package.pth"
    tools/packages.sh "$venv" docs
    touch "$venv/installed"
fi
"$venv/bin/python" -m sphinx -W --keep-going --quiet -b html "$@" docs build/site
grep -rhoE '(href|src)="https?://[^"#]+' build/site --include='*.html' | sed 's/^[a-z]*="//' | sort -u >build/site-links
echo "site: build/site/index.html; links to other sites, which are not followed: build/site-links"
