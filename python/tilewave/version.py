"""The version of the installed package."""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("tilewave")
except PackageNotFoundError:  # run from a source tree
    VERSION = "0+unknown"
