"""The weight memory of a cluster: main words, ninth weights, and the weights of one lane fetched per cycle."""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib.data import ArrayLayout, StructLayout
from amaranth.lib.memory import Memory, ReadPort
from amaranth.lib.wiring import Component, In, Out, Signature
from amaranth.utils import exact_log2

from tilewright.isa.machine import TILE_BYTES, Machine
from tilewright.rtl.arithmetic.winograd import VALUE
from tilewright.rtl.stream.stages import Pipeline, flow

__all__ = ["WeightBuffer", "fetch_layout", "weight_write_signature", "written_bytes"]


def fetch_layout(machine: Machine) -> StructLayout:
    """Return the layout of a request for weights.

    ``pointer`` counts 128-bit words, with ``winograd`` 3x3 kernels; ``lane`` is the lane's number in its cluster. Of an
    array of inner products ``pointer`` counts pairs of words, and ``lane`` pairs of lanes; with ``winograd`` it counts
    pairs of kernels, which are words. ``fresh``: the kernel is not the successor of the one fetched before. ``pool``: a
    one for byte ``l`` of lane ``l`` of the array, and zeros, whatever the memory holds; of more than 16 lanes, those
    whose byte lies in run ``part`` of ``machine.lane_runs``. Without transforms an array knows neither ``fresh`` nor
    ``winograd``. ``by_channel``: all weights are zero but those of the fetch number ``turn``, counted through the
    clusters; where a fetch is two kernels, one a lane, ``second`` says which of them counts. ``four``: each lane of the
    cluster whose turn it is has its own kernel, of two the ``second`` or the first, and multiplies the second of two
    patches with it.
    """
    kernels = {"fresh": 1, "winograd": 1} if machine.winograd else {}
    parts = {"part": range(machine.lane_runs)} if machine.lane_runs > 1 else {}
    turns = {}
    if machine.takes_channel_kernels:
        turns = {"by_channel": 1, "turn": range(max(2, machine.lanes // machine.lanes_per_fetch)),
                 **({"second": 1} if machine.pairs_channels else {}),
                 **({"four": 1} if machine.takes_four_patches else {})}
    return StructLayout({"pointer": 17, "lane": 2, **kernels, "pool": 1, **parts, **turns})


def weight_write_signature(machine: Machine) -> Signature:
    """Return the write port: one bus word per cycle, always accepted, numbered as `ldw` numbers them.

    Where weights are decoded two words a cycle, ``data`` are two, alike unless both are written: ``both``, and the
    index is even.
    """
    return Signature({
        "valid": Out(1),
        **({"ninth": Out(1)} if machine.winograd else {}),
        **({"both": Out(1)} if machine.decodes_two_words else {}),
        "index": Out(16),
        "data": Out(8 * written_bytes(machine)),
    })


def written_bytes(machine: Machine) -> int:
    """Return the bytes that the write port takes at most in a cycle."""
    return machine.decoded_bytes if machine.coded_weights else machine.bus_bytes


class WeightBuffer(Component):
    """Fetch the weights of one lane per cycle: 16 bytes of a run, or the nine of a 3x3 kernel; or twice as many.

    Words of even and odd number, which two lanes of an array of inner products take, are memories of their own. Two
    kernels are one word, of either.

    Nine weights cost nine bytes of reading: eight are one half of a main word, which is a memory of its own, and
    a word of ninth weights is read once for sixteen kernels. Layouts are those of docs/datapath.md.

    A fetch is answered ``LATENCY`` cycles later, and sees what was written in the cycle before or earlier.

    Parameters
    ----------
    machine : Machine
    cluster : int
        Number of the cluster whose words it keeps.

    Members
    -------
    write : ``In(weight_write_signature(machine))``
        Words for any cluster.
    fetch : ``In(flow(fetch_layout(machine)))``
    o : ``Out(flow(...))``
        ``weights`` (16 int8), ``dot``: they are no 3x3 kernel. Of an array of inner products, ``weights`` twice.
    """

    LATENCY = 4

    def __init__(self, machine: Machine, cluster: int) -> None:
        self.machine = machine
        self.cluster = cluster
        self._parts = max(1, TILE_BYTES // machine.bus_bytes)  # bus words of one word
        run = ArrayLayout(VALUE, TILE_BYTES)
        super().__init__({
            "write": In(weight_write_signature(machine)),
            "fetch": In(flow(fetch_layout(machine))),
            "o": Out(flow(StructLayout({
                "weights": ArrayLayout(run, machine.lanes_per_fetch) if machine.inner else run, "dot": 1}))),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        words = self.machine.weight_words
        self._kept = self._keep(m)
        if self.machine.inner:
            self._fetch_pairs(m)
            return m
        m.submodules.low = low = Memory(shape=64, depth=words, init=[])
        m.submodules.high = high = Memory(shape=64, depth=words, init=[])
        fetch = self.fetch.payload
        pipe = Pipeline(m, self.fetch.valid, **{name: fetch[name] for name in fetch.shape().members})
        if not self.machine.winograd:
            self._fetch_runs(m, pipe, low, high)
            return m
        m.submodules.ninths = ninths = Memory(shape=128, depth=words // 8, init=[])
        self._connect_write(m, low, high, ninths)
        odd = fetch.pointer[0]
        pipe.step(
            word=Mux(fetch.winograd, fetch.pointer >> 1, fetch.pointer)[:17],
            **self._uses(("use_low", ~fetch.pool & ~(fetch.winograd & odd)),
                         ("use_high", ~fetch.pool & ~(fetch.winograd & ~odd)),
                         fresh=fetch.fresh | ~fetch.pointer[:4].any()),
        )
        ports = [self._read(m, memory, address, pipe.valid & use) for memory, address, use in (
            (low, pipe.word, pipe.use_low), (high, pipe.word, pipe.use_high), (ninths, pipe.word[3:], pipe.use_ninth))]
        pipe.step()
        registers = []
        for name, port, use in zip(("low", "high", "ninth"), ports,
                                   (pipe.use_low, pipe.use_high, pipe.use_ninth), strict=True):
            register = Signal.like(port.data, name=f"{name}_word", reset_less=True)
            with m.If(pipe.valid & use):  # nothing between the block RAM and its register
                m.d.sync += register.eq(port.data)
            registers.append(register)
        pipe.step()
        self._select(m, pipe, *registers)
        return m

    def _fetch_runs(self, m: Module, pipe: Pipeline, low: Memory, high: Memory) -> None:
        """Fetch runs, or ones and zeros for a sum: all that a plain array multiplies with."""
        self._connect_write(m, low, high, None)
        pipe.step(word=pipe.pointer, use=~pipe.pool)
        ports = [self._read(m, memory, pipe.word, pipe.valid & pipe.use) for memory in (low, high)]
        pipe.step()
        words = Signal(128, name="words", reset_less=True)
        with m.If(pipe.valid & pipe.use):  # nothing between the block RAM and its register
            m.d.sync += words.eq(Cat(port.data for port in ports))
        pipe.step()
        weights, chosen = self.o.payload.weights.as_value(), Mux(pipe.pool, self._ones(pipe), words)
        m.d.comb += self.o.payload.dot.eq(1)
        m.d.sync += self.o.valid.eq(pipe.valid)
        with m.If(pipe.valid):
            m.d.sync += weights.eq(chosen)

    def _fetch_pairs(self, m: Module) -> None:
        """Fetch the runs of two lanes, or ones and zeros for the sums of two; or two kernels of one."""
        fetch, kernels, halves = self.fetch.payload, self.machine.winograd, list[Memory]()
        pipe = Pipeline(m, self.fetch.valid, **{name: fetch[name] for name in fetch.shape().members})
        for odd in range(2):
            for name in ("low", "high"):
                half = Memory(shape=64, depth=self.machine.weight_words // 2, init=[])
                m.submodules[f"{name}_{'odd' if odd else 'even'}"] = half
                halves.append(half)
            self._connect_write(m, halves[-2], halves[-1], None, odd=odd)
        if not kernels:
            pipe.step(word=pipe.pointer, use_even=~pipe.pool, use_odd=~pipe.pool)
        else:
            ninths = self._ninths(m)
            pipe.step(
                word=Mux(fetch.winograd, fetch.pointer >> 1, fetch.pointer)[:17],
                **self._uses(("use_even", ~fetch.pool & ~(fetch.winograd & fetch.pointer[0])),
                             ("use_odd", ~fetch.pool & ~(fetch.winograd & ~fetch.pointer[0])),
                             fresh=fetch.fresh | ~fetch.pointer[:3].any()),
            )
        uses = ["use_even", "use_even", "use_odd", "use_odd"]
        ports = [self._read(m, memory, pipe.word, pipe.valid & getattr(pipe, use))
                 for memory, use in zip(halves, uses, strict=True)]
        if kernels:
            uses.append("use_ninth")
            ports.append(self._read(m, ninths, pipe.word[2:], pipe.valid & pipe.use_ninth))
        pipe.step()
        words = []
        for number, (port, use) in enumerate(zip(ports, uses, strict=True)):
            word = Signal.like(port.data, name=f"word_{number}", reset_less=True)
            with m.If(pipe.valid & getattr(pipe, use)):  # nothing between the block RAM and its register
                m.d.sync += word.eq(port.data)
            words.append(word)
        pipe.step()
        ones = Cat(self._ones(pipe, 2 * pipe.lane + odd)[:128] for odd in range(2))
        weights, runs = self.o.payload.weights.as_value(), Mux(pipe.pool, ones, Cat(words[:4]))
        m.d.sync += self.o.valid.eq(pipe.valid)
        if not kernels:
            m.d.comb += self.o.payload.dot.eq(1)
            with m.If(pipe.valid):
                m.d.sync += weights.eq(runs)
            return
        pointer, winograd = pipe.pointer, pipe.winograd
        last = words[4].word_select(pointer[:3], 16)
        # Eight weights are half a word, and the ninth is a byte behind the other's.
        kernels_of_word = [Cat(Mux(pointer[0], words[2 + number], words[number]), last.word_select(number, 8))
                           for number in range(2)]
        if self.machine.takes_four_patches:     # the first output's kernel for the second patch, too
            kernels_of_word[1] = Mux(pipe.four & ~pipe.second, *kernels_of_word)
        pair = [self._of_turn(pipe, kernel, number) for number, kernel in enumerate(kernels_of_word)]
        with m.If(pipe.valid):
            m.d.sync += self.o.payload.dot.eq(~winograd)
            with m.If(winograd):
                for number, kernel in enumerate(pair):
                    m.d.sync += weights[128 * number:128 * number + 72].eq(kernel)
            with m.Else():
                m.d.sync += weights.eq(runs)

    def _uses(self, *halves: tuple[str, Value], fresh: Value) -> dict[str, Value]:
        """Return by name whether the memories of two ``halves`` and of ninth weights are read, and which kernels count.

        By channel a word of ninth weights is read for each kernel, and nothing where it is not this cluster's turn.
        """
        fetch = self.fetch.payload
        if not self.machine.takes_channel_kernels:
            return {**dict(halves), "use_ninth": fetch.winograd & fresh}
        four = fetch.four if self.machine.takes_four_patches else Const(0)
        lane = Mux(four, 0, fetch.lane) if self.machine.takes_four_patches else fetch.lane
        mine = ~fetch.by_channel | (fetch.turn == self.cluster * self.machine.fetch_slots + lane)
        counts = {"counts_0": mine}
        if self.machine.pairs_channels:
            counts = {"counts_0": mine & ~(fetch.by_channel & (fetch.second | four)),
                      "counts_1": mine & ~(fetch.by_channel & ~fetch.second & ~four)}
        return {**{name: use & mine for name, use in halves},
                "use_ninth": fetch.winograd & mine & (fetch.by_channel | fresh), **counts}

    def _of_turn(self, pipe: Pipeline, weights: Value, number: int = 0) -> Value:
        """Return ``weights`` of kernel ``number``, or zeros where it does not count: `_uses`."""
        return Mux(getattr(pipe, f"counts_{number}"), weights, 0) if self.machine.takes_channel_kernels else weights

    def _ninths(self, m: Module) -> Memory:
        """Return the memory of ninth weights, whose words are written."""
        m.submodules.ninths = ninths = Memory(shape=128, depth=self.machine.weight_words // 8, init=[])
        kept = self._kept
        port = ninths.write_port(granularity=128 // self._parts)
        m.d.comb += [
            port.addr.eq(kept.word),
            port.data.eq(self._replicated(kept.data)),
            port.en.eq(self._parts_written(kept.valid & kept.ninth)),
        ]
        return ninths

    def _keep(self, m: Module) -> Pipeline:
        """Register a bus word that is this cluster's, as it comes from far; return it and the place where it goes.

        A bus word of 16 bytes or less is part of a word of one cluster, the clusters in turn; a wider one is a word of
        each of neighbouring clusters.
        """
        write, bus_bytes, clusters = self.write, self.machine.bus_bytes, self.machine.clusters
        words, written = max(1, bus_bytes // TILE_BYTES), max(1, written_bytes(self.machine) // TILE_BYTES)
        part_bits, turn_bits = exact_log2(self._parts), exact_log2(clusters // words)
        turn, word = write.index[part_bits:part_bits + turn_bits], write.index[part_bits + turn_bits:]
        mine = turn == self.cluster // words
        if written > words:     # two words of the bus are for twice as many clusters
            mine = Mux(write.both, turn[1:] == self.cluster // written, mine)
        pipe = Pipeline(m, write.valid & mine, prefix="write_")
        pipe.step(
            part=write.index[:part_bits],
            word=word,
            data=write.data if written == 1 else write.data.word_select(self.cluster % written, 8 * TILE_BYTES),
            **({"ninth": write.ninth} if self.machine.winograd else {}),
            **({"both": write.both} if self.machine.decodes_two_words else {}),
        )
        return pipe

    def _replicated(self, data: Value) -> Value:
        """Return a word of 16 bytes of what is written, at each of the places where it may go."""
        return data.replicate(8 * TILE_BYTES // len(data))

    def _parts_written(self, valid: Value) -> Value:
        """Return which parts of a word are written, one bit for each."""
        kept, parts = self._kept, self._parts
        two = parts > 1 and self.machine.decodes_two_words
        return (Cat(valid, valid & kept.both) if two else valid) << kept.part

    def _ones(self, pipe: Pipeline, inner: Value | None = None) -> Value:
        """Return the weights of a sum: a one for the byte that lane ``inner`` of the cluster takes."""
        lane = self.cluster * self.machine.lanes_per_cluster + (pipe.lane if inner is None else inner)
        one: Value = Const(1, 128)
        if self.machine.lane_runs > 1:
            one = Cat(lane[4:] == pipe.part, Const(0, 127))
        return one << Cat(Const(0, 3), lane[:4])

    def _connect_write(self, m: Module, low: Memory, high: Memory, ninths: Memory | None, *,
                       odd: int | None = None) -> None:
        """Keep the bus words of this cluster, or those of words of even or ``odd`` number."""
        kept, parts = self._kept, self._parts
        mine, word, data = kept.valid, kept.word, self._replicated(kept.data)
        if odd is not None:
            mine, word = mine & (word[0] == odd), word[1:]
            if self.machine.winograd:
                mine = mine & ~kept.ninth
        selected = Signal(parts)
        m.d.comb += selected.eq(self._parts_written(mine))
        per_half = max(1, parts // 2)
        for memory, half in ((low, 0), (high, 1)):
            port = memory.write_port(granularity=min(64, 128 // parts))
            enables = selected if parts == 1 else selected[half * per_half:(half + 1) * per_half]
            m.d.comb += [
                port.addr.eq(word),
                port.data.eq(data[64 * half:64 * (half + 1)]),
                port.en.eq(enables if ninths is None else Mux(kept.ninth, 0, enables)),
            ]
        if ninths is None:
            return
        port = ninths.write_port(granularity=128 // parts)
        m.d.comb += [port.addr.eq(word), port.data.eq(data), port.en.eq(Mux(kept.ninth, selected, 0))]

    @staticmethod
    def _read(m: Module, memory: Memory, address: Value, enable: Value) -> ReadPort:
        port = memory.read_port()
        m.d.comb += [port.addr.eq(address), port.en.eq(enable)]
        return port

    def _select(self, m: Module, pipe: Pipeline, low: Value, high: Value, ninth: Value) -> None:
        """Register what the lane multiplies with; bytes that do not count stay as they were."""
        o = self.o.payload
        weights = o.weights.as_value()
        pointer, winograd, pool = pipe.pointer, pipe.winograd, pipe.pool
        ones = self._ones(pipe)
        eight, last = (self._of_turn(pipe, each) for each in (
            Mux(pointer[0], high, low), ninth.word_select(pointer[:4], 8)))
        m.d.sync += self.o.valid.eq(pipe.valid)
        with m.If(pipe.valid):
            m.d.sync += o.dot.eq(~winograd)
            with m.If(pool):
                m.d.sync += weights.eq(ones)
            with m.Elif(winograd):
                m.d.sync += weights[:64].eq(eight)
                m.d.sync += weights[64:72].eq(last)
            with m.Else():
                m.d.sync += weights.eq(Cat(low, high))
