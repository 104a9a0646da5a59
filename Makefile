# make demo: set up and run the main job.  make test: set up if missing, then all tests.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
SOURCES := $(shell find include src bindings cmake python -type f -not -name '*.pyc') CMakeLists.txt pyproject.toml

.PHONY: demo test test-long proofs lint docs clean

demo: $(VENV)/installed
	$(VENV)/bin/tilewave run -n 2 examples/01_first_nest.py

test: $(VENV)/installed
	PYTHON=$(VENV)/bin/python tools/test.sh

test-long: $(VENV)/installed
	PYTHON=$(VENV)/bin/python tools/test.sh --long

# Random schedules against their sequential lists, and mutants against the checker: make proofs PART=1/16
PART ?= 1/1
proofs: $(VENV)/installed
	$(VENV)/bin/python tests/proofs.py --part $(PART)

$(VENV)/installed: $(SOURCES) tools/setup.sh tools/stages.sh
	PYTHON=$(PYTHON) tools/setup.sh $(VENV)
	touch $@

# What make test checks of the sources: folders, imports, ruff and clang-format.
lint: $(VENV)/installed
	PYTHON=$(VENV)/bin/python tools/lint.sh

# The pages that are written from docstrings, headers and docs/benchmarks/*.json.
docs:
	$(PYTHON) tools/api.py
	$(PYTHON) tools/benchmarks.py

clean:
	rm -rf build demo $(VENV)
