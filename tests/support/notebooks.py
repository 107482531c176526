"""Notebooks of examples/notebooks, run from the first cell to the last: in place by `make notebooks`, or by a test.

What no two runs share (times, ids of processes, paths of folders) is removed, so that running them again changes a
notebook only where a result has changed.
"""

import os
import re
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "notebooks"
SECONDS = 900
_NOTEBOOK = 4
_FOLDERS = re.compile(r"/[\w./-]*/(?=examples/)|/tmp/[\w.-]+/")
"""Where a checkout and a temporary folder lie."""


def notebooks() -> list[Path]:
    """Return the files, in their order."""
    return sorted(FOLDER.glob("*.ipynb"))


def executed(path: Path) -> nbformat.NotebookNode:
    """Return a notebook with the outputs of a run in its own folder.

    Raises
    ------
    CellExecutionError
        If a cell fails.
    """
    notebook = nbformat.read(path, as_version=_NOTEBOOK)
    root = str(FOLDER.parents[1])
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    os.environ |= {"COLUMNS": "120", "PYTHONWARNINGS": "ignore"}  # of packages of others, such as missing widgets
    NotebookClient(notebook, kernel_name="python3", timeout=SECONDS, record_timing=False,
                   extra_arguments=["--IPKernelApp.log_level=ERROR"],
                   resources={"metadata": {"path": str(FOLDER)}}).execute()
    return _settled(notebook)


def _settled(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Remove what no two runs share."""
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
                         "language_info": {"name": "python"}}
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = _joined(cell.outputs)
    return notebook


def _joined(outputs: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """Return the outputs of a cell: streams joined, of a table its HTML alone, and no folder of this machine."""
    found: list[nbformat.NotebookNode] = []
    for output in outputs:
        if output.output_type == "stream" and found and found[-1].get("name") == output.name:
            found[-1].text += output.text
            continue
        found.append(output)
        if "text/html" in output.get("data", {}):
            del output.data["text/plain"]
    for output in found:
        for holder in (output, output.get("data", {})):
            holder |= {key: _FOLDERS.sub("", text) for key, text in holder.items() if isinstance(text, str)}
    return found


if __name__ == "__main__":
    for each in notebooks():
        print(each.name, flush=True)
        nbformat.write(executed(each), each)
