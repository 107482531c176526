"""`tilewright_init` of a project for the AXI4-Lite port, compiled for this computer: registers are an array."""

import platform
import subprocess
import sys
from dataclasses import replace

import pytest

from tilewright.compiler.compile import compile_model
from tilewright.compiler.emit.baremetal import BareMetalError, write_project
from tilewright.isa.machine import Machine, preset
from tilewright.isa.registers.capability import capability
from tilewright.isa.registers.host_registers import BY_HOST_REGISTER
from tilewright.models import builtin

NANO = preset("nano")
OK, OTHER_HARDWARE, LOCKED = 0, 102, 103

# The core's fence is no instruction of other processors. A pointer must fit into 32 bits, as on the core.
HARNESS = """\
#include <stdint.h>
#include <stdio.h>
__asm__(".macro fence\\n.endm");
uint32_t registers[1024];
#define TILEWRIGHT_COMMANDS_BASE registers
#include "model.c"
const uint8_t tilewright_weights[TILEWRIGHT_WEIGHTS_BYTES];
void tw_port_before_run(void) {}
void tw_port_after_run(void) {}
int main(int count, char **given)
{
    for (int i = 1; i + 1 < count; i += 2) {
        unsigned offset, value;
        sscanf(given[i], "%x", &offset);
        sscanf(given[i + 1], "%x", &value);
        registers[offset / 4] = value;
    }
    int code = tilewright_init();
    printf("%d %x", code, (unsigned)(tilewright_fault_address() - (uint32_t)(uintptr_t)registers));
    for (int i = 0; i < 4; i++)
        printf(" %u %u", registers[16 + 4 * i + 1] - registers[16 + 4 * i], registers[16 + 4 * i + 2]);
}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Return the artefact, and a program that calls tilewright_init with registers of given values."""
    folder = tmp_path_factory.mktemp("project")
    artefact = compile_model(builtin("lenet5"), NANO, folder / "artefact", port="axi4lite")
    write_project(artefact, folder / "c")
    (folder / "c" / "harness.c").write_text(HARNESS)
    done = subprocess.run([sys.executable, "-m", "ziglang", "cc", "-O1", "-w", "-static", "-target",
                           f"{platform.machine()}-linux-musl", "-fno-pie", "-no-pie", "harness.c", "-o", "harness"],
                          cwd=folder / "c", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return artefact, folder / "c" / "harness"


def init(project, machine: Machine, **others: int) -> list[int]:
    """Return code, offset of the register that differs, and size and rights of the windows."""
    values = capability(machine) | others
    given = [f"{number:x}" for name, value in values.items() for number in (BY_HOST_REGISTER[name].offset, value)]
    said = subprocess.run([project[1], *given], capture_output=True, text=True, check=True).stdout.split()
    return [int(said[0]), int(said[1], 16), *map(int, said[2:])]


def test_init_sets_the_windows_of_the_network(project):
    expected = [number for window in project[0].manifest.windows
                for number in (window.limit - window.base, window.permission.value)]
    ours = replace(NANO, name="ours", watchdog_cycles=0, command_cycles=1 << 20, erasure=1, axi_prot=2)
    code, _, *found = init(project, ours)
    assert code == OK
    assert found == expected + [0] * (8 - len(expected))


@pytest.mark.parametrize(("change", "register"), [
    ({"lanes": 4, "clusters": 1}, "array"), ({"array": "plain", "column_reuse": False}, "array"),
    ({"queue_depth": 32}, "array"), ({"weight_bytes": 32768}, "buffers"), ({"parameter_channels": 1024}, "buffers"),
    ({"max_pooling": False}, "options"), ({"row_unit": True}, "options")])
def test_init_refuses_another_machine_and_names_the_register(project, change, register):
    code, offset, *windows = init(project, replace(NANO, **change))
    assert (code, offset) == (OTHER_HARDWARE, BY_HOST_REGISTER[register].offset)
    assert windows == [0] * 8


@pytest.mark.parametrize("register", ["identity", "version", "extension"])
def test_init_refuses_another_port_or_extension(project, register):
    code, offset, *_ = init(project, NANO, **{register: capability(NANO)[register] ^ 1})
    assert (code, offset) == (OTHER_HARDWARE, BY_HOST_REGISTER[register].offset)


def test_init_tells_that_a_window_is_locked(project):
    code, offset, *windows = init(project, NANO, lock=1)
    assert code == LOCKED
    assert offset in {register.offset for name, register in BY_HOST_REGISTER.items() if name.startswith("window")}
    assert windows == [0] * 8


def test_registers_want_the_port_that_has_them(project, tmp_path):
    artefact = compile_model(builtin("lenet5"), NANO, tmp_path / "artefact")
    with pytest.raises(BareMetalError, match=r"--windows registers .*axi4lite.*'cvxif'"):
        write_project(artefact, tmp_path / "c", windows="registers")
    write_project(project[0], tmp_path / "pins", windows="pins")
    assert "tw_port_set_window(0" in (tmp_path / "pins" / "model.c").read_text()
