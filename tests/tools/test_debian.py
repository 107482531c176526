"""Tools from Debian's packages run from the cache, and what cannot be had is refused by a sentence."""

import subprocess
from pathlib import Path

import pytest

from tilewright.tools import debian
from tilewright.tools.toolchain import ToolMissingError

COUNTER = """\
module top;
  integer i, sum = 0;
  initial begin
    for (i = 1; i <= 10; i = i + 1) sum = sum + i;
    $display("sum %0d", sum);
  end
endmodule
"""


@pytest.fixture
def nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide what the system has installed."""
    which = debian.shutil.which
    monkeypatch.setattr(debian.shutil, "which",
                        lambda name, **options: None if name in debian._PROGRAMS else which(name, **options))


@pytest.mark.usefixtures("nowhere_else")
def test_icarus_runs_from_the_cache(tmp_path: Path) -> None:
    (tmp_path / "top.v").write_text(COUNTER)
    subprocess.run([debian.debian_tool("iverilog"), "-o", "top", "top.v"], cwd=tmp_path, check=True)
    done = subprocess.run([debian.debian_tool("vvp"), "top"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout == "sum 55\n"


@pytest.mark.usefixtures("nowhere_else")
def test_opensta_runs_from_the_cache(tmp_path: Path) -> None:
    (tmp_path / "read.tcl").write_text(f"read_liberty {debian.debian_data('osu018_stdcells.lib')}\n"
                                       "puts [llength [get_lib_cells */*]]\nexit\n")
    done = subprocess.run([debian.debian_tool("sta"), "-exit", "read.tcl"], cwd=tmp_path, check=True,
                          capture_output=True, text=True)
    assert "32" in done.stdout.split()


@pytest.mark.usefixtures("nowhere_else")
def test_a_system_without_debian_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    monkeypatch.setattr(debian.shutil, "which", lambda name, **options: None)
    with pytest.raises(ToolMissingError, match=r"iverilog .*no apt-get"):
        debian.debian_tool("iverilog")


@pytest.mark.usefixtures("nowhere_else")
def test_a_package_that_cannot_be_fetched_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    monkeypatch.setitem(debian._PROGRAMS, "vvp", debian._Program("tilewright-no-such-package", "nothing"))
    with pytest.raises(ToolMissingError, match="tilewright-no-such-package"):
        debian.debian_tool("vvp")
    assert not list(tmp_path.rglob("complete"))
