# amaranth: UnusedElaboratable=no
"""Rate, latency, splitting and errors of the AXI4 master; tests/cocotb/test_axi.py checks the protocol."""

import random
from collections import deque

import pytest

from tests.support.streams import simulate, transfer, transfer_timed
from tilewright.rtl.bus.axi import AxiMaster, AxiReader, AxiWriter, BurstSplitter

LATENCY = 20
EXOKAY, SLVERR, DECERR = 1, 2, 3

# (address, beats): in a block; up to a 4 KiB border and over it; the longest; the end of the address space.
CORNERS = [
    (0x0000_0000, 1),
    (0x0000_0FF0, 1),
    (0x0000_0FF0, 2),
    (0x0000_1000, 64),
    (0x0000_1010, 64),
    (0x1234_5670, 1000),
    (0x0001_0000, 65535),
    (0xFFFF_FFF0, 1),
]


def request(address, beats):
    return {"address": address, "beats": beats}


@pytest.mark.parametrize("data_bytes", [4, 8, 16])
@pytest.mark.parametrize("max_burst", [2, 16, 64, 256])
@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_bursts_cover_each_request_once_and_cross_no_block(data_bytes, max_burst, stall):
    rng = random.Random(data_bytes * max_burst)
    sizes = [1, 7, 64, 1000] if max_burst > 2 else [1, 7]
    cases = [(rng.randrange(2**31) & -data_bytes, rng.randint(1, rng.choice(sizes))) for _ in range(20)]
    cases += [case for case in CORNERS if case[1] <= 20 * max_burst or max_burst == 256]
    expected = [burst for address, beats in cases for burst in cut(address, beats, data_bytes, max_burst)]
    dut = BurstSplitter(data_bytes, max_burst)
    bursts = transfer(dut, [request(*case) for case in cases], count=len(expected), stall=stall)
    assert [(burst.address, burst.length + 1, burst.last) for burst in bursts] == expected


def cut(address, beats, data_bytes, max_burst):
    """Return the (address, beats, last) that a request is to be cut into."""
    bursts = []
    while beats:
        part = min(beats, max_burst - address // data_bytes % max_burst)
        beats -= part
        bursts.append((address, part, beats == 0))
        address += part * data_bytes
    return bursts


def test_splitter_sends_a_burst_per_cycle_from_the_cycle_after_the_request():
    requests = [request(0x100, 1), request(0x200, 1), request(0x1000, 128), request(0x300, 1)]
    arrivals = transfer_timed(BurstSplitter(8, 64), requests, count=5)
    assert [cycle for cycle, _ in arrivals] == [1, 2, 3, 4, 5]


def read_all(dut, cases, *, latency=LATENCY, failing=(), fails=("rresp", SLVERR), unmarked=(), cut_short=()):
    """Read ``cases`` from a memory that sends one word a cycle; return [(cycle, data, last)].

    Of words at the addresses ``unmarked`` RLAST is low; at ``cut_short`` (word, those that never come) it is high.
    """
    axi = dut.m_axi
    words = []
    total = sum(beats for _, beats in cases) - sum(missing for _, missing in cut_short)
    shorter = dict(cut_short)

    async def memory_and_user(ctx):
        waiting = deque(cases)
        beats = deque()  # (cycle when ready, address, last of burst)
        cycle = 0
        ctx.set(axi.arready, 1)
        ctx.set(dut.o.ready, 1)
        while len(words) < total:
            ctx.set(dut.i.valid, bool(waiting))
            if waiting:
                ctx.set(dut.i.payload, request(*waiting[0]))
            answer = bool(beats) and beats[0][0] <= cycle
            ctx.set(axi.rvalid, answer)
            if answer:
                ctx.set(axi.rdata, beats[0][1])
                ctx.set(axi.rlast, (beats[0][2] or beats[0][1] in shorter) and beats[0][1] not in unmarked)
                ctx.set(getattr(axi, fails[0]), fails[1] if beats[0][1] in failing else 0)
                for _ in range(shorter.get(beats.popleft()[1], 0)):
                    beats.popleft()
            sampled = (dut.i.ready, axi.arvalid, axi.araddr, axi.arlen, dut.o.valid, dut.o.payload)
            _, _, taken, asked, address, length, valid, word = await ctx.tick().sample(*sampled)
            if waiting and taken:
                waiting.popleft()
            if asked:
                for k in range(length + 1):
                    beats.append((cycle + latency, address + k * dut.data_bytes, k == length))
            if valid:
                words.append((cycle, word.data, word.last))
            cycle += 1
        ctx.set(axi.rvalid, 0)
        await ctx.tick()
        words.append((ctx.get(dut.error), ctx.get(dut.error_address)))

    simulate(dut, memory_and_user)
    return words[:-1], words[-1]


@pytest.mark.parametrize("beats", [2, 8, 33, 1000])
def test_reader_saturates_a_memory_with_20_cycles_latency(beats):
    cases = [(0x4000 + 16 * 1024 * k, beats) for k in range(max(2, 200 // beats))]
    words, _ = read_all(AxiReader(8), cases)
    total = len(cases) * beats
    assert [cycle for cycle, _, _ in words] == list(range(1 + LATENCY, 1 + LATENCY + total))
    places = [address + 8 * k for address, beats in cases for k in range(beats)]
    assert [data for _, data, _ in words] == places
    assert [last for _, _, last in words] == [k == beats - 1 for _, beats in cases for k in range(beats)]


def test_reader_is_limited_by_its_outstanding_bursts():
    # 4 bursts of 1 beat per round trip of LATENCY cycles and one to free the place.
    words, _ = read_all(AxiReader(8, outstanding=4), [(8 * k, 1) for k in range(40)])
    assert words[-1][0] - words[3][0] == 9 * (LATENCY + 1)


@pytest.mark.parametrize("fails", [("rresp", SLVERR), ("rresp", DECERR), ("rresp", EXOKAY), ("rid", 1)])
def test_reader_keeps_the_address_of_the_first_burst_in_error(fails):
    cases = [(0x1000, 8), (0x1FF0, 4), (0x3000, 8)]
    words, error = read_all(AxiReader(8), cases, failing={0x2008, 0x3000}, fails=fails)
    assert error == (1, 0x2000)  # the second burst of the second request
    assert len(words) == 20
    assert read_all(AxiReader(8), cases)[1][0] == 0


def test_a_last_word_that_is_not_marked_is_an_error_and_the_bursts_behind_it_are_whole():
    cases = [(0x1000, 8), (0x2000, 4), (0x3000, 8)]
    words, error = read_all(AxiReader(8), cases, unmarked={0x2018})
    assert error == (1, 0x2000)
    assert [(data, last) for _, data, last in words] == [
        (address + 8 * k, k == beats - 1) for address, beats in cases for k in range(beats)]
    # Nor need a word follow.
    assert read_all(AxiReader(8), cases, unmarked={0x3038})[1] == (1, 0x3000)


def test_a_burst_that_ends_early_is_an_error_and_the_bursts_behind_it_are_whole():
    words, error = read_all(AxiReader(8), [(0x1000, 8), (0x2000, 4), (0x3000, 2)], cut_short=[(0x2008, 2)])
    assert error == (1, 0x2000)
    assert [data for _, data, _ in words] == [*range(0x1000, 0x1040, 8), 0x2000, 0x2008, 0x3000, 0x3008]


def write_all(dut, cases, *, latency=LATENCY, failing=(), fails=("bresp", SLVERR),
              patience=lambda aw, w, ahead: (True, True)):
    """Write ``cases`` to a memory that acknowledges a burst ``latency`` cycles after its last word.

    ``patience`` says which of AW and W the memory takes, from AWVALID, WVALID and by how many the addresses
    taken are ahead of the bursts wholly taken. Returns the cycle of each word, whether the writer was idle
    in each cycle, and the error.
    """
    axi = dut.m_axi
    cycles, written, idle, error = [], {}, [], []
    data = [100 + k for k in range(sum(beats for _, beats in cases))]

    async def memory_and_user(ctx):
        waiting, words = deque(cases), deque(data)
        addresses, burst, bursts, responses = deque(), [], deque(), deque()
        cycle = 0
        while words or waiting or not idle[-1]:
            ctx.set(dut.i.valid, bool(waiting))
            if waiting:
                ctx.set(dut.i.payload, request(*waiting[0]))
            ctx.set(dut.data.valid, bool(words))
            if words:
                ctx.set(dut.data.payload, {"data": words[0], "strobe": 0xFF})
            answer = bool(responses) and responses[0][0] <= cycle
            ctx.set(axi.bvalid, answer)
            if answer:
                ctx.set(getattr(axi, fails[0]), fails[1] if responses.popleft()[1] in failing else 0)
            ahead = len(addresses) - len(bursts)
            take_address, take_word = patience(ctx.get(axi.awvalid), ctx.get(axi.wvalid), ahead)
            ctx.set(axi.awready, take_address)
            ctx.set(axi.wready, take_word)
            user = (dut.i.ready, dut.data.ready, dut.idle)
            bus = (axi.awvalid, axi.awaddr, axi.awlen, axi.wvalid, axi.wdata, axi.wlast)
            _, _, *sampled = await ctx.tick().sample(*user, *bus)
            taken, word_taken, quiet, aw, address, length, w, word, last = sampled
            idle.append(quiet)
            if waiting and taken:
                waiting.popleft()
            if words and word_taken:
                words.popleft()
            if aw and take_address:
                addresses.append((address, length + 1))
            if w and take_word:
                cycles.append(cycle)
                burst.append(word)
                if last:
                    bursts.append(burst)
                    burst = []
            if addresses and bursts:
                (address, length), arrived = addresses.popleft(), bursts.popleft()
                assert len(arrived) == length
                written.update({address + 8 * k: word for k, word in enumerate(arrived)})
                responses.append((cycle + latency, address))
            cycle += 1
        error.append((ctx.get(dut.error), ctx.get(dut.error_address)))

    simulate(dut, memory_and_user)
    places = [address + 8 * k for address, beats in cases for k in range(beats)]
    assert written == dict(zip(places, data, strict=True))
    return cycles, idle, error[0]


@pytest.mark.parametrize("beats", [2, 8, 33, 1000])
def test_writer_sends_a_word_per_cycle_from_request_to_request(beats):
    cases = [(0x4000 + 16 * 1024 * k, beats) for k in range(max(2, 200 // beats))]
    cycles, idle, _ = write_all(AxiWriter(8), cases)
    total = len(cases) * beats
    assert cycles == list(range(2, 2 + total))
    # The first request is taken in cycle 0; the last word is sent in cycle total + 1, answered LATENCY later.
    assert idle == [1] + [0] * (total + 1 + LATENCY) + [1]


def test_writer_begins_a_burst_in_every_cycle():
    cycles, _, _ = write_all(AxiWriter(8), [(0x4000 + 64 * k, 1) for k in range(16)])
    assert cycles == list(range(2, 18))


def test_writer_is_not_idle_in_any_cycle_of_a_single_request():
    _, idle, _ = write_all(AxiWriter(8), [(0x4000, 1)])
    assert idle == [1] + [0] * (2 + LATENCY) + [1]


@pytest.mark.parametrize(
    "patience",
    [
        pytest.param(lambda aw, w, ahead: (not ahead and aw and w, ahead or (aw and w)), id="both at once"),
        pytest.param(lambda aw, w, ahead: (ahead == 0, ahead > 0), id="address first"),
        pytest.param(lambda aw, w, ahead: (ahead < 0, ahead >= 0), id="words first"),
    ],
)
def test_writer_suits_memories_that_wait_for_either_channel(patience):
    write_all(AxiWriter(8), [(0x1F00, 50), (0x9000, 1), (0xA000, 1), (0xB000, 3)], patience=patience)


@pytest.mark.parametrize("fails", [("bresp", SLVERR), ("bresp", DECERR), ("bresp", EXOKAY), ("bid", 1)])
def test_writer_keeps_the_address_of_the_first_burst_in_error(fails):
    cases = [(0x1000, 8), (0x1FF0, 4), (0x3000, 8)]
    assert write_all(AxiWriter(8), cases, failing={0x2000, 0x3000}, fails=fails)[2] == (1, 0x2000)
    assert write_all(AxiWriter(8), cases)[2][0] == 0


def test_ports_are_named_like_the_signals_of_the_specification():
    signals = {name for name, _ in AxiMaster(16).m_axi.signature.members.items()}
    assert {"araddr", "arlen", "rdata", "rlast", "awaddr", "wstrb", "bresp"} <= signals
    assert len(AxiMaster(16).m_axi.wstrb) == 16


@pytest.mark.parametrize("component", [AxiReader, AxiWriter, AxiMaster])
def test_wrong_parameters_are_refused(component):
    with pytest.raises(ValueError, match=r"data_bytes.*not 128"):
        component(128)
    with pytest.raises(ValueError, match=r"AXI.*max_burst.*not 1024"):
        component(8, max_burst=1024)


def test_bursts_longer_than_axi_allows_are_refused():
    with pytest.raises(ValueError, match=r"AXI.*max_burst.*not 48"):
        BurstSplitter(8, 48)
