"""Starts a module of this package as a program, given its name: ``python start.py tilewave.cli.on_rank``.

``python -m`` imports from the current folder first, where files of other users may lie.
"""

import sys

if __name__ == "__main__":
    if not getattr(sys.flags, "safe_path", False):  # Python 3.11 and newer
        del sys.path[0]  # before anything else is imported
    from importlib import import_module

    import_module(sys.argv.pop(1)).main()
