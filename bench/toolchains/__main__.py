"""Write the page of the tool chains: ``python -m tilewright.bench.toolchains PAGE [--tool MODULE] [--network NAME]``.

Environments, files and figures are kept; the first run installs some gigabytes and takes an hour.
"""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from tilewright.bench.toolchains.environments import environment, network_files, written
from tilewright.bench.toolchains.tool_cells import ToolCells
from tilewright.bench.toolchains.tool_list import QuantiserTool, read_tools
from tilewright.bench.toolchains.toolchains_page import ToolFigures, toolchains_page
from tilewright.bench.toolchains.writers.networks import NETWORKS
from tilewright.errors import InputError, ToolError
from tilewright.tools.files import require_place, write_file
from tilewright.tools.page_origin import with_origin

__all__ = ["main"]


def main() -> int:
    """Write the page; return 1 if something crashed."""
    tools = read_tools()
    parser = argparse.ArgumentParser(prog="python -m tilewright.bench.toolchains", description=__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument("--tool", action="append", choices=[tool.module for tool in tools],
                        help="this one, beside the plain files; or several")
    parser.add_argument("--network", action="append", choices=list(NETWORKS), help="this one; or several")
    given = parser.parse_args()
    try:
        require_place(given.page)
    except InputError as error:
        parser.error(error.sentence)
    networks, cells = given.network or list(NETWORKS), ToolCells.open()
    plain = {name: _plain(tools[0], name, cells) for name in networks}
    found = [_figures(tool, plain, cells) for tool in tools if given.tool is None or tool.module in given.tool]
    write_file(given.page, with_origin(toolchains_page(found, networks, plain), "make toolchains").encode())
    return any(cell.crashed for each in found for cell in each.cells.values())


def _plain(tool: QuantiserTool, network: str, cells: ToolCells) -> int:
    """Return the cycles of the first form of the first tool."""
    cell = cells.of(written(tool, network)[0], tool.forms[0], network_files(network)[1])
    if not cell.cycles:
        raise ToolError(f"Plain file of {network} must run, and does not: {cell}")
    return cell.cycles


def _figures(tool: QuantiserTool, plain: Mapping[str, int], cells: ToolCells) -> ToolFigures:
    try:
        environment(tool)
    except ToolError as error:
        print(error, file=sys.stderr)
        return ToolFigures(tool, {}, str(error))
    found = {}
    for network, cycles in plain.items():
        for form, file in zip(tool.forms, written(tool, network), strict=True):
            found[form.name, network] = cell = cells.of(file, form, network_files(network)[1], cycles)
            shown = cell.unwritten or cell.invalid or cell.refused or cell.crashed or f"{cell.cycles:,} cycles"
            print(f"{tool.name}, {form.name}, {network}: {shown}"[:200], file=sys.stderr, flush=True)
    return ToolFigures(tool, found)


if __name__ == "__main__":
    sys.exit(main())
