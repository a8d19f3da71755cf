"""Configuration of Sphinx: pages in Markdown, and the reference from the docstrings."""

import re
from importlib.metadata import metadata

_about = metadata("espnet_lenbias")

project = _about["Name"]
author = "espnet_lenbias contributors"
version = release = _about["Version"]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
]

html_theme = "furo"
html_title = project
templates_path = ["templates"]
exclude_patterns = ["_build"]
highlight_language = "none"  # of blocks that name no language: diagrams, formulas
default_role = "literal"  # single backticks, as in docstrings

myst_heading_anchors = 3
myst_links_external_new_tab = False

# One page for each module, written to docs/reference by `make docs`.
autosummary_generate = True
autodoc_default_options = {"member-order": "bysource"}
autodoc_typehints = "signature"
napoleon_use_ivar = True
napoleon_use_rtype = False

# References to this package must lead somewhere. Those to other packages cannot, since
# the build reads nothing from the network, and private names have no page.
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"(?!espnet_lenbias\.).*"),
    ("py:.*", r"espnet_lenbias\..*\._\w+"),
    ("py:.*", r"espnet_lenbias\..*\.[A-Z]"),  # type variables
]
# Public names are documented twice: at the root, and in their modules.
suppress_warnings = ["ref.python"]


def _name_files_of_the_repository(app, docname, source):
    """Name the files outside of docs that the pages link to, which are not built.

    The words of a link stay, unless they are the beginning of the file's name.
    """
    source[0] = re.sub(r"\[([^]]+)\]\(\.\./([^)#]+)[^)]*\)", _named, source[0])


def _named(link):
    words, path = link.groups()
    return f"`{path}`" if path.startswith(words) else f"{words} (`{path}`)"


def setup(app):
    """Let Sphinx call what is defined here."""
    app.connect("source-read", _name_files_of_the_repository)
