"""The version of the installed package."""

import functools


@functools.cache
def version() -> str:
    """Return the version of the installed package's metadata; reading these takes 20 ms."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("tilewave")
    except PackageNotFoundError:  # run from a source tree
        return "0+unknown"
