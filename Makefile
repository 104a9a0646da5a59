# make demo: set up and run the main job.  make test: set up if missing, then all tests.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
CORE := $(shell find include src bindings cmake -type f) CMakeLists.txt

.PHONY: FORCE demo test test-long coverage dev check programs proofs mutants lint docs wheel wheel-test clean

# Who works on the sources gets a compiler's warnings as errors.
test test-long dev check lint: export TILEWAVE_STRICT := 1

demo: export TILEWAVE_EXTRAS :=
demo: $(VENV)/built
	$(VENV)/bin/tilewave demo

# All others need the packages of tests, too, which set-up installs for them.
test test-long proofs mutants dev check lint docs: $(VENV)/tested
$(VENV)/tested: pyproject.toml | $(VENV)/installed
	tools/packages.sh $(VENV) test

test: $(VENV)/built
	PYTHON=$(VENV)/bin/python tools/test.sh

test-long: $(VENV)/built
	PYTHON=$(VENV)/bin/python tools/test.sh --long

# The share of lines and branches that the tests reach, in an environment of its own: half an hour.
coverage:
	PYTHON=$(PYTHON) tools/coverage.sh

# Random schedules against their sequential lists, and mutants against the checker: make proofs PART=1/16
# What the checker finds, into docs/theory/checker.md: make proofs FOUND=200
PART ?= 1/1
FOUND ?=
proofs: $(VENV)/built
	$(VENV)/bin/python tests/proofs.py --part $(PART) $(if $(FOUND),--found $(FOUND))

# Random programs of the whole language against their plain loops: make programs COUNT=100000 PART=1/16 SEED=0
COUNT ?= 1000
SEED ?=
programs: $(VENV)/built
	$(VENV)/bin/python tests/programs.py --part $(PART) --count $(COUNT) $(if $(SEED),--seed $(SEED))

# Small faults put into a copy of the source, one at a time: which ones do tests not catch? make mutants ONLY=src/core
ONLY ?=
mutants: $(VENV)/built
	$(VENV)/bin/python tests/mutants/run.py --part $(PART) $(ONLY)

# The environment, with the package installed in it to be edited: a changed .py is used as it is, a changed .cpp is
# compiled with eleven others.
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

# docs/benchmarks.md from docs/benchmarks/*.json; in build/site the site of all pages, docstrings, headers and examples.
docs: $(VENV)/built
	$(PYTHON) tools/benchmarks.py
	PYTHON=$(VENV)/bin/python tools/docs.sh

# Wheels of this processor for every Linux of glibc 2.28 or later, and the source archive, in dist.
wheel:
	$(PYTHON) tools/wheel.py

# Those of dist in clean environments of each Python that is here, without a compiler; then a program in C++.
wheel-test:
	$(PYTHON) tools/wheel.py --test

clean:
	rm -rf build demo dist $(VENV) docs/gallery docs/api/python docs/api/cpp
