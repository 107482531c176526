"""Files for other tools in the Verilog package: IP-XACT against its schema and the ports, FuseSoC by running it."""

import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tilewright.hardware.package.descriptions import COMPONENT, CORE_FILE, SYNTHESES, descriptions
from tilewright.hardware.package.licence import licence_text
from tilewright.hardware.package.package import write_verilog
from tilewright.hardware.package.top import TOP, Top, TopPort
from tilewright.isa.machine import preset
from tilewright.isa.registers.host_registers import registers_of
from tilewright.tools.debian import debian_tool

NANO = preset("nano")
SPIRIT = "{http://www.spiritconsortium.org/XMLSchema/SPIRIT/1685-2009}"

# Order of elements in IEEE 1685-2009's schema, where ours have more than one child.
ORDER = {
    "component": ("vendor", "library", "name", "version", "busInterfaces", "addressSpaces", "memoryMaps", "model",
                  "fileSets", "description"),
    "busInterface": ("name", "busType", "abstractionType", "master", "slave", "portMaps"),
    "portMap": ("logicalPort", "physicalPort"),
    "addressSpace": ("name", "range", "width"),
    "memoryMap": ("name", "addressBlock"),
    "addressBlock": ("name", "baseAddress", "range", "width", "usage", "register"),
    "register": ("name", "description", "addressOffset", "size", "access", "field"),
    "field": ("name", "description", "bitOffset", "bitWidth"),
    "model": ("views", "ports"),
    "view": ("name", "envIdentifier", "language", "modelName", "fileSetRef"),
    "port": ("name", "description", "wire"),
    "wire": ("direction", "vector"),
    "vector": ("left", "right"),
    "fileSet": ("name", "file"),
    "file": ("name", "fileType"),
}
AXI_LITE = ("AWADDR AWPROT AWVALID AWREADY WDATA WSTRB WVALID WREADY BRESP BVALID BREADY "
            "ARADDR ARPROT ARVALID ARREADY RDATA RRESP RVALID RREADY").split()


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """Return the folder of a package with the AXI4-Lite port."""
    folder = tmp_path_factory.mktemp("package")
    write_verilog(NANO, folder, port="axi4lite")
    return folder


@pytest.fixture(scope="module")
def component(package):
    return ElementTree.parse(package / COMPONENT).getroot()


def text(element, path):
    return element.findtext("/".join(f"{SPIRIT}{name}" for name in path.split("/")))


def named(component, tag):
    """Return the elements called ``tag`` by the text of their ``name``."""
    return {text(each, "name"): each for each in component.iter(f"{SPIRIT}{tag}")}


def test_elements_are_in_the_order_of_the_schema(component):
    for element in component.iter():
        tag, children = element.tag.removeprefix(SPIRIT), [child.tag.removeprefix(SPIRIT) for child in element]
        assert tag in ORDER or len(set(children)) <= 1, tag
        places = [ORDER[tag].index(child) for child in children] if tag in ORDER else []
        assert all(one <= other for one, other in pairwise(places)), (tag, children)


def test_ports_are_those_of_the_top_module(package, component):
    header = (package / "rtl" / f"{TOP}.v").read_text().partition(");")[0]
    expected = {(name, direction.strip().removesuffix("put"), high or None)
                for direction, high, name in re.findall(r"(input |output) wire +(?:\[(\d+):0\] )?(\w+)", header)}
    found = {(name, text(port, "wire/direction"), text(port, "wire/vector/left"))
             for name, port in named(component, "port").items()}
    assert found == expected
    assert len(found) > 60
    assert not any(name.startswith("window") for name, *_ in found)


def test_interfaces_map_every_port_of_theirs(component):
    buses = named(component, "busInterface")
    ports = set(named(component, "port"))
    assert set(buses) == {"s_axi", "m_axi"}
    for name, bus in buses.items():
        maps = {text(each, "physicalPort/name"): text(each, "logicalPort/name")
                for each in bus.iter(f"{SPIRIT}portMap")}
        assert maps.pop("clk") == "ACLK"
        assert set(maps) == {port for port in ports if port.startswith(f"{name}_")}
        assert maps == {port: port.removeprefix(f"{name}_").upper() for port in maps}
        if name == "s_axi":
            assert set(maps.values()) == set(AXI_LITE)


def test_registers_are_those_of_the_table(component):
    found = named(component, "register")
    assert {name: int(text(each, "addressOffset"), 0) for name, each in found.items()} == {
        register.name: register.offset for register in registers_of("registers")}
    for register in registers_of("registers"):
        assert {name: (int(text(each, "bitOffset")), int(text(each, "bitWidth")))
                for name, each in named(found[register.name], "field").items()} == {
            field.name: (field.low, field.width) for field in register.fields}


def test_files_are_there(package, component):
    assert [name for name in named(component, "file") if not (package / name).is_file()] == []
    assert set(named(component, "file")) == set((package / "tilewright.f").read_text().split())


def test_without_axi_there_are_neither_interfaces_nor_registers():
    top = Top((TopPort("clk", 1, True, "clock"), TopPort("wb_adr", 32, False, "a < b & c")), "")
    root = ElementTree.fromstring(descriptions(NANO, top, ("rtl/a.v",))[COMPONENT])
    assert not any(list(root.iter(f"{SPIRIT}{tag}")) for tag in ("busInterface", "memoryMaps", "addressSpaces"))
    assert text(named(root, "port")["wb_adr"], "description") == "a < b & c"


def test_fusesoc_runs_the_testbench(package, tmp_path):
    tools = [str(Path(debian_tool(name)).parent) for name in ("iverilog", "vvp")]
    environment = dict(os.environ, PATH=os.pathsep.join([*tools, os.environ["PATH"]]), HOME=str(tmp_path),
                       XDG_CONFIG_HOME=str(tmp_path), XDG_DATA_HOME=str(tmp_path), XDG_CACHE_HOME=str(tmp_path))
    name = re.search(r"^name: (\S+)$", (package / CORE_FILE).read_text(), re.MULTILINE)[1]
    done = subprocess.run(
        [sys.executable, "-c", "from fusesoc.main import main; main()", "--cores-root", str(package), "run", "--target",
         "sim", name], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASS: " in done.stdout


def test_every_file_that_has_comments_names_the_licence_and_the_licence_is_there(package):
    assert (package / "LICENSE").read_text() == licence_text()
    assert "Apache License" in licence_text()
    files = [path for path in package.rglob("*") if path.suffix in (".v", ".lpf", ".xdc", ".sdc", ".core")
             or path.name == "Makefile"]
    assert len(files) > 8
    assert [path.name for path in files if "SPDX-License-Identifier: Apache-2.0" not in
            path.read_text().splitlines()[1 if path.suffix == ".core" else 0]] == []


def test_fusesoc_knows_a_target_for_each_family(package, tmp_path):
    environment = dict(os.environ, HOME=str(tmp_path), XDG_CONFIG_HOME=str(tmp_path), XDG_DATA_HOME=str(tmp_path),
                       XDG_CACHE_HOME=str(tmp_path))
    name = re.search(r"^name: (\S+)$", (package / CORE_FILE).read_text(), re.MULTILINE)[1]

    def fusesoc(*arguments):
        done = subprocess.run(
            [sys.executable, "-c", "from fusesoc.main import main; main()", "--cores-root", str(package), *arguments,
             name], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert set(re.findall(r"^synth_(\w+)", fusesoc("core", "show"), re.MULTILINE)) == {*SYNTHESES, "xilinx7"}
    for target, tool, script in (("synth_gowin", "yosys", "synth_gowin -family gw2a -top"),
                                 ("synth_xilinx7", "vivado", "xc7a100tcsg324-1")):
        fusesoc("run", "--setup", "--target", target)
        (folder,) = tmp_path.rglob(f"{target}-{tool}")
        assert any(script in path.read_text() for path in folder.glob("*.tcl")), target
