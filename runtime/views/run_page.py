"""The page of a run: one HTML file that contains its data, style and scripts, and needs no network."""

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from tilewright.runtime.advice.machine_changes import TriedChange
from tilewright.runtime.compared_run import ComparedRun
from tilewright.runtime.views.page_data import page_data
from tilewright.tools.templates import render

__all__ = ["page_of", "run_page"]

_FOLDER = Path(__file__).parent


def run_page(run: ComparedRun, command: str, tried: Sequence[TriedChange] = (), machine: str = "") -> str:
    """Return the page of a run; ``command`` is the one that gives it again, the rest as for :func:`page_data`."""
    return page_of(_FOLDER / "run_page.html.j2", page_data(run, tried, machine) | {"command": command},
                   scripts=("drawing.js", "timeline.js", "layer_view.js", "run_page.js"))


def page_of(template: Path, data: Mapping[str, Any], *, scripts: Sequence[str | Path], **parts: Any) -> str:
    """Return a page that ``scripts`` draw from ``data``, of which ``title`` is the page's; ``parts`` are HTML.

    Scripts and style lie beside this module, unless they are given as a path.
    """
    # Names in a model are a stranger's: no text of theirs may end the element it stands in.
    content = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return render(template, title=escape(data["title"]), data=content, **parts,
                  style=(_FOLDER / "page.css").read_text(encoding="utf-8"),
                  script="\n".join((_FOLDER / name).read_text(encoding="utf-8") for name in scripts))
