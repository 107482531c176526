"""How Sphinx makes the site of these pages: `make site`. The pages stay plain Markdown, as a forge shows them too.

The tree of pages is that of the lists of links on `index.md`, on the four pages it names, one for each kind of page,
and on `decisions/index.md`; `python.md` gets the docstrings of the names in ``tilewright.__all__``.
"""

import inspect
import re
import warnings

from sphinx.application import Sphinx

import tilewright

KINDS = ("tutorials", "how-to", "reference", "explanation")
LISTED = re.compile(r"^- \[([^\]]+)\]\(([\w/-]+)\.md\)", re.MULTILINE)

project = "Tilewright"
author = "The Tilewright authors"
copyright = "the Tilewright authors, Apache-2.0"
version = release = tilewright.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["**/README.md"]
nitpicky = False
html_theme = "furo"
html_title = f"Tilewright {tilewright.__version__}"
html_show_sourcelink = False
html_copy_source = False
myst_heading_anchors = 4
highlight_language = "none"  # of blocks that name none: most are output or drawings
smartquotes = False  # they would make one dash of the two before an option
autodoc_typehints = "none"  # the docstrings have the types
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"


def tree_of(text: str) -> str:
    """Return the table of contents that a list of links stands for: `- [title](page.md)`, one a line."""
    entries = "\n".join(f"{title} <{page}>" for title, page in LISTED.findall(text))
    return f"\n\n```{{toctree}}\n:hidden:\n\n{entries}\n```\n"


def interface() -> str:
    """Return a section for each public name: what Sphinx makes of its docstring."""
    sections = []
    for name in tilewright.__all__:
        value = getattr(tilewright, name)
        kind = "autoclass" if inspect.isclass(value) else "autofunction" if inspect.isfunction(value) else None
        if kind is not None:
            members = "\n   :members:" if kind == "autoclass" and not issubclass(value, BaseException) else ""
            directive = f".. {kind}:: tilewright.{name}{members}"
            sections.append(f"## {name}\n\n```{{eval-rst}}\n{directive}\n```\n")
    return "\n" + "\n".join(sections)


def complete(_app: Sphinx, page: str, source: list[str]) -> None:
    """Give a page what only the site has: the tree of pages, or the docstrings."""
    if page in ("index", "decisions/index", *KINDS):
        source[0] += tree_of(source[0])
    if page == "python":
        source[0] += interface()


def setup(app: Sphinx) -> None:
    """Let Sphinx call `complete` for every page that it reads."""
    warnings.simplefilter("ignore", tilewright.FloatOnCoreWarning)
    app.connect("source-read", complete)
