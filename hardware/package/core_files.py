"""The host core for a Verilog package: CV32E40X's files as its wheel has them, and the system of core and coprocessor.

The core's files are under the licence that lies beside them; they are copied, and not changed.
"""

from tilewright.sim.verilog.core_sources import core_license, core_sources, system_sources

SYSTEM = "tilewright_soc"
FILE_LIST = f"{SYSTEM}.f"
FOLDER = "cv32e40x"


def core_files(coprocessor: str) -> dict[str, str]:
    """Return the files by their path in the package: the core's, the system's, and a list of all that it is made of.

    ``coprocessor`` is the path of the coprocessor's Verilog there. The top module is `SYSTEM`.
    """
    theirs = {f"{FOLDER}/{path.name}": path.read_text(encoding="utf-8") for path in core_sources()}
    ours = {f"rtl/{path.name}": path.read_text(encoding="utf-8") for path in system_sources()}
    listed = "".join(f"{name}\n" for name in (*theirs, *ours, coprocessor))
    return {**theirs, f"{FOLDER}/LICENSE": core_license().read_text(encoding="utf-8"), **ours, FILE_LIST: listed}
