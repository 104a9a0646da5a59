"""The site: Sphinx over the Markdown of this folder, the docstrings, the headers' comments and the examples."""

import inspect
import json
import os
import pydoc
import re
import sys
from pathlib import Path

import tilewave
from numpydoc.xref import DEFAULT_LINKS

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
sys.path[:0] = [str(ROOT / "tools"), str(DOCS), str(ROOT)]
import cpp_api  # noqa: E402
from pictures import Pictures, order_of_examples  # noqa: E402

from docs.papers.regenerate import draw  # noqa: E402

project = "Tilewave"
author = "the Tilewave authors"
copyright = author
version = release = tilewave.__version__
#: Where files are that the site does not have: sources, tools.
REPOSITORY = "https://github.com/tilewave/tilewave"

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_templates", "benchmarks/*", "**sg_execution_times.rst"]
nitpicky = True
suppress_warnings = ["config.cache"]  # of objects in sphinx_gallery_conf

# Markdown.
highlight_language = "none"  # of blocks that name no language: what programs print
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath", "colon_fence"]

# Docstrings: a page a public name; `name` is a link where it is one of ours.
default_role = "autolink"
autosummary_generate = True
autodoc_typehints = "none"  # they are in the docstrings
autodoc_default_options = {"members": True}
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"  # types that are not ours: those of Python and NumPy would need their sites
numpydoc_xref_aliases = {name: name for name in DEFAULT_LINKS} | {
    name: f"tilewave.{name}" for name in tilewave.__all__ if name[0].isupper()
}

# Every example is run on one rank; what it prints and the pictures that it writes into demo/ are shown.
sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"CMakeLists",
    "example_extensions": {".py", ".cpp"},
    "nested_sections": False,
    "subsection_order": order_of_examples,
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": ("matplotlib", Pictures()),
    "reset_modules": (),
    "min_reported_time": 10**6,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "plot_gallery": "True",
    "abort_on_example_error": True,
    "backreferences_dir": None,
    "copyfile_regex": r"$^",
    "notebook_images": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "Tilewave"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "Tilewave"},
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
}
html_sidebars = {"index": [], "faq": [], "glossary": [], "benchmarks": []}
copybutton_exclude = ".linenos, .gp, .go"


def site_target(target, folder):
    """Where a link of a page leads on the site: to a page, a picture, an example, or a file of the repository."""
    if re.match(r"\w+:|#", target):
        return target
    name, mark, heading = target.partition("#")
    path = (folder / name).resolve()
    if path.suffix in (".py", ".cpp") and path.is_relative_to(ROOT / "examples"):
        return f"/gallery/{path.relative_to(ROOT / 'examples').with_suffix('')}.rst"
    if path == ROOT / "examples":
        return "/gallery/index.rst"
    if path.is_dir() and (path / "index.md").exists():
        path /= "index.md"
    if path == ROOT / "README.md":
        path = DOCS / "index.md"
    same = DOCS / f"{path.stem.lower()}.md"  # CHANGELOG.md and CONTRIBUTING.md are pages, too
    if path.parent == ROOT and same.exists():
        path = same
    if path.is_relative_to(DOCS):
        return f"/{path.relative_to(DOCS)}{mark}{heading}"
    kind = "tree" if path.is_dir() else "blob"
    return f"{REPOSITORY}/{kind}/main/{path.relative_to(ROOT)}{mark}{heading}"


def read_page(app, docname, source):
    """Pages that stand at the root are taken from there; links between files become links between pages."""
    path = Path(app.env.doc2path(docname))
    if path.suffix != ".md":
        return
    text = source[0]
    folder = path.parent
    if found := re.search(r"^% root: (\S+)\n", text, re.MULTILINE):
        app.env.note_dependency(str(ROOT / found[1]))
        text = text.replace(found[0], with_targets((ROOT / found[1]).read_text(), ROOT))
    else:
        text = with_targets(text, folder)
    source[0] = text


def with_targets(text, folder):
    """A page's text with the targets of its links as the site has them; code is left alone."""
    parts = re.split(r"(^```.*?^```$|`[^`\n]*`)", text, flags=re.MULTILINE | re.DOTALL)
    for at in range(0, len(parts), 2):
        part = re.sub(r"\[([^\[\]]*)\]\(([^)\s]+)\)", untitled, parts[at])
        parts[at] = re.sub(r"\]\(([^)\s]+)\)", lambda found: f"]({site_target(found[1], folder)})", part)
    return "".join(parts)


def untitled(found):
    """A link whose text is the name of a file: without text it has the title of the page."""
    text, target = found.groups()
    name = target.partition("#")[0]
    return f"[]({target})" if name.endswith(".md") and name.endswith(text.strip("`")) and text else found[0]


def plain_name(app, env, node, contnode):
    """What stands for a name in single backticks without a page: a parameter, or an attribute in a docstring."""
    target = node.get("reftarget", "")
    owner, _, name = target.rpartition(".")
    listed = owner and re.search(rf"^\s*{name}\b", inspect.getdoc(pydoc.locate(owner)) or "", re.MULTILINE)
    if node.get("reftype") == "obj" and (listed or not target.startswith("tilewave")):
        return contnode
    return None


#: Classes whose objects programs make. Functions return those of others, whose arguments are therefore not shown.
MADE = re.compile(r"tilewave\.(Blocks|Context|multigrid\.Poisson)")


def signature(app, what, name, obj, options, arguments, returned):
    """Arguments of what programs call, those of ours left out."""
    if what != "class" or not arguments:
        return None
    return re.sub(r"(, \*)?, _\w+=[^,)]*", "", arguments) if MADE.fullmatch(name) else "", returned


def setup(app):
    app.connect("autodoc-process-signature", signature)
    app.connect("missing-reference", plain_name)
    cpp_api.write(DOCS / "api" / "cpp")
    for found in (DOCS / "papers").glob("*.json"):
        draw(json.loads(found.read_text()), found.parent)
    os.environ["TILEWAVE_PIN"] = "off"
    app.connect("source-read", read_page)
