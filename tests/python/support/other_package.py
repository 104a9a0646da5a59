"""A copy of the package that a process of its own imports in place of the installed one."""

from pathlib import Path

# The finder of an editable install comes before PYTHONPATH.
WITHOUT_THE_FINDER = """\
import sys
sys.meta_path[:] = [each for each in sys.meta_path if type(each).__name__ != "ScikitBuildRedirectingFinder"]
"""


def comes_first(folder):
    """Make the packages in a folder those that Python finds where PYTHONPATH names the folder."""
    Path(folder, "sitecustomize.py").write_text(WITHOUT_THE_FINDER)
