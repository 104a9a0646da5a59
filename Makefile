# make demo: set up and run the main job.  make test: set up if missing, then all tests.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
CORE := $(shell find include src bindings cmake -type f) CMakeLists.txt

.PHONY: FORCE demo test test-long coverage dev check proofs mutants lint docs clean

# Who works on the sources gets a compiler's warnings as errors.
test test-long dev check lint: export TILEWAVE_STRICT := 1

demo: $(VENV)/built
	$(VENV)/bin/tilewave run -n 2 examples/01_first_nest.py

test: $(VENV)/built
	PYTHON=$(VENV)/bin/python tools/test.sh

test-long: $(VENV)/built
	PYTHON=$(VENV)/bin/python tools/test.sh --long

# The share of lines and branches that the tests reach, in an environment of its own: half an hour.
coverage:
	PYTHON=$(PYTHON) tools/coverage.sh

# Random schedules against their sequential lists, and mutants against the checker: make proofs PART=1/16
PART ?= 1/1
proofs: $(VENV)/built
	$(VENV)/bin/python tests/proofs.py --part $(PART)

# Small faults put into a copy of the source, one at a time: which ones do tests not catch? make mutants ONLY=src/core
ONLY ?=
mutants: $(VENV)/built
	$(VENV)/bin/python tests/mutants/run.py --part $(PART) $(ONLY)

# The environment, with the package installed in it to be edited: a changed .py is used as it is, a changed .cpp compiled
# alone.
dev: $(VENV)/built

$(VENV)/built: $(CORE) $(VENV)/installed
	PYTHON=$(VENV)/bin/python tools/build.sh
	touch $@

$(VENV)/installed: pyproject.toml tools/setup.sh build/modules
	PYTHON=$(PYTHON) tools/setup.sh $(VENV)
	touch $@

# The names of the package's files, which an editable install knows: one that is new or moved asks for another.
build/modules: FORCE
	@mkdir -p build; find python -name '*.py' | sort >$@.now; cmp -s $@.now $@ && rm $@.now || mv $@.now $@
FORCE:

# Lint and tests of one folder, in at most a minute: make check FOLDER=linalg
FOLDER ?=
check: $(VENV)/built
	PYTHON=$(VENV)/bin/python tools/check.sh $(FOLDER)

# Folders, imports, ruff, clang-format and types, as in make test; and clang-tidy of what changed since it last ran.
lint: $(VENV)/built
	PYTHON=$(VENV)/bin/python tools/lint.sh

# The pages that are written from docstrings, headers and docs/benchmarks/*.json.
docs:
	$(PYTHON) tools/api.py
	$(PYTHON) tools/benchmarks.py

clean:
	rm -rf build demo $(VENV)
