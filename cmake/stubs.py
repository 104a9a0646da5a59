"""Writes the stubs of the compiled module: stubs.py MODULE.so FOLDER makes FOLDER/_core/*.pyi.

As `nanobind_add_stub` does, which would import the module by its bare name, or a package that is installed already:
the names in the stubs are those of `tilewave._core`, of the file that was just built.
"""

import importlib.util
import sys
import types

from nanobind.stubgen import main

NAME = "tilewave._core"


def load(path):
    """Import the module from its file, in a package that has nothing else."""
    package = types.ModuleType(NAME.partition(".")[0])
    package.__path__ = []
    sys.modules[package.__name__] = package
    spec = importlib.util.spec_from_file_location(NAME, path)
    sys.modules[NAME] = package._core = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package._core)


if __name__ == "__main__":
    load(sys.argv[1])
    main(["--quiet", "--recursive", "--module", NAME, "--output-dir", sys.argv[2]])
