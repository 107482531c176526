"""Main memory: strided reads and writes, the windows that bound them, and what is counted."""

import numpy as np
import pytest

from tilewright.isa.memory import MAIN_BASE, AddressWindow, Fault, Permission
from tilewright.sim.values.main_memory import MainMemory, WindowError

BUS = 8


def memory_of(*windows: AddressWindow) -> MainMemory:
    memory = MainMemory(4096, windows)
    memory.bytes[:] = np.arange(4096) % 251 - 128
    return memory


READABLE = AddressWindow(MAIN_BASE + 64, MAIN_BASE + 1024)
WRITABLE = AddressWindow(MAIN_BASE + 1024, MAIN_BASE + 2048, Permission.WRITE)


@pytest.mark.parametrize(("address", "shape", "steps"), [
    (64, (1, 1, 8), (0, 0)), (67, (2, 3, 5), (100, 11)), (64, (3, 2, 8), (4, 2)), (1016, (1, 1, 8), (1 << 31, 1 << 31)),
    (600, (3, 1, 16), (-200, 0)), (100, (2, 2, 3), (0, 0))])
def test_read_strided(address, shape, steps):
    memory = memory_of(READABLE)
    found = memory.read_strided(MAIN_BASE + address, shape, steps, BUS)
    words = 0
    for row in range(shape[0]):
        for run in range(shape[1]):
            first = address + row * steps[0] + run * steps[1]
            np.testing.assert_array_equal(found[row, run], memory.bytes[first:first + shape[2]])
            words += len({byte // BUS for byte in range(first, first + shape[2])})
    assert memory.words_read == words


def test_addresses_wrap_at_the_end_of_the_address_space():
    back = (1 << 32) - 20
    memory = memory_of(AddressWindow(MAIN_BASE + 64, MAIN_BASE + 1024, Permission.READ_WRITE))
    found = memory.read_strided(MAIN_BASE + 120, (3, 1, 5), (back, 0), BUS)
    for row, first in enumerate((120, 100, 80)):
        np.testing.assert_array_equal(found[row, 0], memory.bytes[first:first + 5])
    memory.write_strided(MAIN_BASE + 120, np.arange(10, dtype=np.int8).reshape(2, 1, 5), (back, 0), BUS)
    np.testing.assert_array_equal(memory.bytes[120:125], np.arange(5))
    np.testing.assert_array_equal(memory.bytes[100:105], np.arange(5, 10))
    with pytest.raises(WindowError) as caught:
        memory.read_strided(MAIN_BASE + 72, (2, 1, 5), (back, 0), BUS)
    assert caught.value.fault == Fault(1, MAIN_BASE + 48)


def test_write_strided():
    memory = memory_of(WRITABLE)
    before = memory.bytes.copy()
    data = np.arange(30, dtype=np.int8).reshape(2, 3, 5)
    memory.write_strided(MAIN_BASE + 1030, data, (100, 7), BUS)
    for row in range(2):
        for run in range(3):
            first = 1030 + 100 * row + 7 * run
            before[first:first + 5] = data[row, run]
    np.testing.assert_array_equal(memory.bytes, before)
    assert memory.bytes_written == 30


@pytest.mark.parametrize(("address", "size", "bad"), [
    (1020, 5, 1016), (56, 8, 56), (63, 4, 56), (1024, 1, 1024), (-8, 8, -8)])
def test_a_read_must_lie_in_a_readable_window(address, size, bad):
    memory = memory_of(READABLE, WRITABLE)
    with pytest.raises(WindowError, match=rf"read outside .*{MAIN_BASE + bad:#x}$") as caught:
        memory.read_strided(MAIN_BASE + address, (1, 1, size), (0, 0), BUS)
    assert caught.value.fault == Fault(1, MAIN_BASE + bad)
    assert memory.words_read == 0


def test_a_write_must_lie_in_a_writable_window():
    memory = memory_of(READABLE, WRITABLE)
    before = memory.bytes.copy()
    with pytest.raises(WindowError, match=r"write outside .*0x80000800$") as caught:
        memory.write_strided(MAIN_BASE + 2040, np.zeros((2, 1, 8), np.int8), (8, 0), BUS)
    assert caught.value.fault == Fault(2, MAIN_BASE + 2048)
    np.testing.assert_array_equal(memory.bytes, before)


def test_windows_judge_whole_requests_and_two_do_not_add_up():
    memory = memory_of(AddressWindow(MAIN_BASE, MAIN_BASE + 8), AddressWindow(MAIN_BASE + 8, MAIN_BASE + 16))
    with pytest.raises(WindowError):
        memory.read_strided(MAIN_BASE + 4, (1, 1, 8), (0, 0), BUS)
    assert memory.read_strided(MAIN_BASE, (1, 2, 8), (0, 8), BUS).shape == (1, 2, 8)


def test_without_windows_nothing_may_be_read():
    with pytest.raises(WindowError, match=r"\(there are none\)"):
        MainMemory(64).read_strided(MAIN_BASE, (1, 1, 8), (0, 0), BUS)


def test_a_window_beyond_memory_is_no_way_out():
    memory = MainMemory(64, [AddressWindow(MAIN_BASE, MAIN_BASE + 4096)])
    with pytest.raises(ValueError, match="it has 64 bytes"):
        memory.read_strided(MAIN_BASE + 60, (1, 1, 8), (0, 0), BUS)


@pytest.mark.parametrize(("base", "limit"), [(0, 64), (MAIN_BASE, MAIN_BASE), (MAIN_BASE, (1 << 32) + 1)])
def test_windows_lie_in_main_memory(base, limit):
    with pytest.raises(ValueError, match=r"Window .*0x80000000, 0x100000000"):
        MainMemory(64, [AddressWindow(base, limit)])


def test_put_and_get():
    memory = MainMemory(64)
    memory.put(MAIN_BASE + 60, b"\x01\xff\x80\x7f")
    assert memory.get(MAIN_BASE + 60, 4) == b"\x01\xff\x80\x7f"
    assert memory.get(MAIN_BASE + 64, 0) == b""


@pytest.mark.parametrize(("address", "size"), [(MAIN_BASE + 61, 4), (MAIN_BASE - 1, 4), (0, 1)])
def test_the_host_must_stay_in_memory_too(address, size):
    with pytest.raises(ValueError, match=rf"64 bytes .*the {size} at {address:#x}$"):
        MainMemory(64).put(address, bytes(size))
