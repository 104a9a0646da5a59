"""The gallery: how examples are run, what is shown of them, and their order."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from sphinx_gallery import gen_rst
from sphinx_gallery.scrapers import figure_rst

#: Folders of examples as the gallery shows them, below examples/.
ORDER = ("examples", "notebooks", "cases")
SECONDS = 300
#: Where examples run, and leave their pictures.
FOLDER = Path(tempfile.gettempdir()) / "tilewave-gallery"
in_process = gen_rst._exec_once


def order_of_examples(folder):
    """The key that sections of the gallery are sorted by."""
    return ORDER.index(Path(folder).name)


class OnRanks:
    """Runs a script as the command in its docstring says, ranks included, in place of executing it here."""

    def __init__(self, code, fake_main):
        self.path, self.main = Path(code.co_filename), fake_main

    def __call__(self):
        command = re.search(r"``tilewave run -n (\d)", self.path.read_text())
        if hasattr(self.main, "___"):  # the last expression, which has run with the rest
            return
        self.main.___ = None
        FOLDER.mkdir(exist_ok=True)
        ended = subprocess.run(
            ["tilewave", "run", "-n", command[1] if command else "1", self.path],
            cwd=FOLDER,
            check=False,  # said below
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        print(ended.stdout)
        if ended.returncode:
            raise RuntimeError(f"{self.path.name} ended with {ended.returncode}: {ended.stderr}")


def execute(code, fake_main):
    """Notebooks run here, as in Jupyter; scripts on ranks."""
    return (in_process if "notebooks" in Path(code.co_filename).parts else OnRanks)(code, fake_main)


gen_rst._exec_once = execute  # there is no option for it; sphinx-gallery is pinned to one version


class Pictures:
    """A scraper of sphinx-gallery: the PNG files that a script has written into demo/."""

    def __repr__(self):
        return "Pictures"  # it is compared between builds

    def __call__(self, block, block_vars, gallery_conf):
        shown = []
        for path in sorted((FOLDER / "demo").glob("*.png")):
            shown.append(next(block_vars["image_path_iterator"]))
            shutil.copy(path, shown[-1])
        shutil.rmtree(FOLDER, ignore_errors=True)
        return figure_rst(shown, gallery_conf["src_dir"])
