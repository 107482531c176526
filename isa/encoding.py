"""The seven instructions: the one table that every other folder reads; importing it checks it.

All live in custom-0 (opcode 0x0B), R-type, one funct3 each; rd is always x0. funct7 holds the variant in its
upper three bits and four semaphore flags below. rs1 and rs2 carry the operand fields, packed from bit 0 upwards
in the order of the table. Source: RISC-V Unprivileged ISA manual, R-type format and base opcode map.
"""

from dataclasses import dataclass

from tilewright.errors import Error

__all__ = [
    "BY_CHANNEL", "BY_MNEMONIC", "CUSTOM_0", "EXTENSION", "EXTENSION_FIELD_BITS", "INSTRUCTIONS", "KNOWN", "SEMAPHORES",
    "SEMAPHORE_WIDTH", "UNITS", "UNIT_FIELD_BITS", "EncodingError", "Field", "Flag", "Instruction", "Semaphore",
    "Variant", "check_table",
]

CUSTOM_0 = 0b0001011


class EncodingError(Error, ValueError):
    """A word cannot be encoded or decoded."""


@dataclass(frozen=True, slots=True)
class Field:
    """``width`` bits of an operand: an unsigned number, or two's complement if ``signed``."""

    name: str
    width: int
    effect: str
    signed: bool = False

    @property
    def range(self) -> range:
        """Values that fit."""
        if self.signed:
            return range(-(1 << (self.width - 1)), 1 << (self.width - 1))
        return range(1 << self.width)


@dataclass(frozen=True, slots=True)
class Semaphore:
    """A counter of events between two units; ``wait`` takes one, ``signal`` adds one."""

    name: str
    effect: str


SEMAPHORES = (
    Semaphore("act_ready", "an input tile is in the activation buffer"),
    Semaphore("act_free", "an input tile has been read for the last time"),
    Semaphore("wgt_ready", "a block of weights is in the weight memories"),
    Semaphore("wgt_free", "a block of weights has been read for the last time"),
    Semaphore("par_free", "a block of parameters has been read for the last time"),
    Semaphore("out_ready", "a tile of results is in the result buffer"),
    Semaphore("out_free", "a region of the result buffer has been stored"),
    Semaphore("res_ready", "a residual tile is in the result buffer"),
    Semaphore("res_free", "a region of the result buffer may take a residual tile"),
    Semaphore("mem_ready", "a stored tensor is complete in main memory"),
)
SEMAPHORE_WIDTH = 6
"""Bits of each semaphore; all are zero after reset."""


@dataclass(frozen=True, slots=True)
class Flag:
    """One of the four low bits of funct7: wait for a semaphore, or signal it."""

    action: str
    semaphore: str

    @property
    def name(self) -> str:
        """``wait_act_ready``, ``signal_act_free`` ..."""
        return f"{self.action}_{self.semaphore}"


@dataclass(frozen=True, slots=True)
class Variant:
    """One form of an instruction: which unit takes it and what its operands hold."""

    name: str
    code: int
    unit: str
    effect: str
    rs1: tuple[Field, ...] = ()
    rs2: tuple[Field, ...] = ()
    flags: tuple[Flag | None, Flag | None, Flag | None, Flag | None] = (None, None, None, None)

    @property
    def fields(self) -> tuple[Field, ...]:
        """Operand fields, rs1's first."""
        return self.rs1 + self.rs2

    def flag_bits(self, *names: str) -> int:
        """Return the funct7 bits of the flags called ``names``."""
        known = {flag.name: 1 << i for i, flag in enumerate(self.flags) if flag is not None}
        if unknown := [name for name in names if name not in known]:
            raise EncodingError(f"Variant {self.name} has the flags {', '.join(known) or 'none'}, "
                                f"not {unknown[0]!r}")
        return sum(known[name] for name in set(names))


@dataclass(frozen=True, slots=True)
class Instruction:
    """A mnemonic, its funct3, and its variants."""

    mnemonic: str
    funct3: int
    effect: str
    variants: tuple[Variant, ...]

    def variant(self, name: str) -> Variant:
        """Return the variant called ``name``."""
        for variant in self.variants:
            if variant.name == name:
                return variant
        raise EncodingError(f"Instruction {self.mnemonic} has the variants "
                            f"{', '.join(v.name for v in self.variants)}, not {name!r}")


UNITS = ("load", "mac", "post", "store", "host")
"""Who takes a command: the four decoupled units, or the command port itself (``host``: it blocks)."""


def _wait(semaphore: str) -> Flag:
    return Flag("wait", semaphore)


def _signal(semaphore: str) -> Flag:
    return Flag("signal", semaphore)


_ADDRESS = Field("address", 32, "byte address in main memory")
_BASE = Field("base", 20, "byte address in the activation buffer; of a block row in the blocked layout")
_TARGET = Field("target", 20, _BASE.effect)
_ROWS = Field("rows", 10, "rows")
_Y = Field("y", 2, "blocked layout: row of the first block row at which to start")
_RESULT = Field("base", 20, "byte address in the result buffer")
_LDA = (_wait("act_free"), _wait("mem_ready"), _signal("act_ready"), None)
_RESIDUAL = (_wait("res_free"), _wait("mem_ready"), _signal("res_ready"), None)
_LDW = (_wait("wgt_free"), _wait("par_free"), _signal("wgt_ready"), None)
_MAC = (_wait("act_ready"), _wait("wgt_ready"), _signal("act_free"), _signal("wgt_free"))
_ACT = (_wait("out_free"), _wait("res_ready"), _signal("out_ready"), _signal("par_free"))
_STA_MEMORY = (_wait("out_ready"), _signal("res_free"), _signal("out_free"), _signal("mem_ready"))
_STA_LOCAL = (_wait("out_ready"), _signal("res_free"), _signal("out_free"), _signal("act_ready"))
_RUN_RS1 = (_BASE, Field("tiles_y", 10, "rows of tiles; 1..1023"),
            Field("y_half", 1, "conv23: the first tile starts at row 2 of its block row"))
_RUN_RS2 = (Field("weight_base", 16, "128-bit word of each cluster's weight memory; conv23: a multiple of 8"),
            Field("groups", 12, "lane groups: output channels / lanes, rounded up; 1..4095"),
            Field("accumulate", 1, "continue from the sums that an earlier command held"),
            Field("hold", 1, "keep the sums in the accumulators: no output; one lane group, one tile group"))

INSTRUCTIONS = (
    Instruction("lda", 0, "load an activation tile: strided DMA to the activation buffer, with padding", (
        Variant("linear", 0, "load", "load rows in the linear layout", (_ADDRESS,), (_BASE, _ROWS, _Y), _LDA),
        Variant("blocked", 1, "load", "load rows in the blocked layout", (_ADDRESS,), (_BASE, _ROWS, _Y), _LDA),
        Variant("residual", 2, "load", "load rows of a residual into the result buffer, where the results are written",
                (_ADDRESS,), (_RESULT, _ROWS), _RESIDUAL),
        Variant("fill_linear", 3, "load", "write whole rows of padding in the linear layout",
                (), (_BASE, _ROWS, _Y), _LDA),
        Variant("fill_blocked", 4, "load", "write whole rows of padding in the blocked layout",
                (), (_BASE, _ROWS, _Y), _LDA),
        Variant("set_row", 5, "load", "a row of memory is `chunks` runs of `chunk_bytes`",
                (Field("chunk_bytes", 16, "bytes of one run; blocked: whole pixels"),
                 Field("chunks", 12, "runs per row")),
                (Field("memory_chunk_step", 32, "bytes between runs in memory"),)),
        Variant("set_step", 6, "load", "strides of the rows",
                (Field("memory_row_step", 32, "bytes between rows in memory"),),
                (Field("row_step", 20, "bytes between rows in the buffer; blocked: between block rows"),)),
        Variant("set_layout", 7, "load", "pixels and their padding",
                (Field("chunk_step", 20, "linear, residual: bytes between runs in the buffer"),),
                (Field("channels", 12, "bytes of a pixel"),
                 Field("left", 6, "padding pixels before a row"),
                 Field("right", 6, "padding pixels after a row"),
                 Field("value", 8, "padding value", signed=True))),
    )),
    Instruction("ldw", 1, "load weights, biases, requantisation parameters and value tables", (
        *(Variant(name, code, "load", effect, (_ADDRESS,),
                  (Field("base", 16, "bus word in the destination"), Field("words", 16, "bus words; 1..65535")),
                  _LDW)
          for name, code, effect in (
              ("main", 0, "load main weight words: 16 weights of a run, or the first eight of two 3x3 kernels"),
              ("ninths", 1, "load the ninth weights of 3x3 kernels, 16 kernels to a word"),
              ("parameters", 2, "load 64-bit channel parameters: bias 32, mantissa 24, shift 8"),
              ("table", 3, "load value tables of post-processing: 256 bytes for each table slot"))),
        *(Variant(name, code, "load", f"the same as {plain}, from coded bus words, as many as ldw.set_coded says",
                  (_ADDRESS,), (Field("base", 16, "bus word in the destination; a multiple of a step's"),
                                Field("steps", 16, "steps of the decoder; 1..65535")), _LDW)
          for name, code, plain in (("coded_main", 4, "main"), ("coded_ninths", 5, "ninths"))),
        Variant("set_coded", 6, "load", "how long a block is that lies coded in memory",
                (Field("words", 16, "bus words; 1..65535"),)),
    )),
    Instruction("conv23", 2, "Winograd F(2x2,3x3) over a block of tiles and all input channels, with column reuse", (
        Variant("run", 0, "mac", "multiply and accumulate 3x3 stride-1 tiles from the blocked layout",
                _RUN_RS1, _RUN_RS2, _MAC),
        Variant("run_without_reuse", 1, "mac", "the same, reading all 16 bytes of every patch (for measurement)",
                _RUN_RS1, _RUN_RS2, _MAC),
        Variant("run_by_channel", 2, "mac", "the same of a depthwise layer: lane l of a lane group sees channel l "
                                            "alone, and has a kernel for it; with reuse where the machine has it",
                _RUN_RS1, _RUN_RS2, _MAC),
        Variant("run_four_patches", 3, "mac", "the same in a quarter of the steps: the patches of four channels come "
                                              "at once, one for each lane of a cluster",
                _RUN_RS1, _RUN_RS2, _MAC),
    )),
    Instruction("conv", 3, "every other convolution and matrix product: any kernel, stride, dilation, groups", (
        Variant("run", 0, "mac", "dot products of 16-byte runs from the linear layout", _RUN_RS1, _RUN_RS2, _MAC),
        Variant("set_planes", 1, "mac", "words of 16 bits, whose upper and lower bytes lie apart: the sums are 256 "
                                        "times those of the first plane, and those of the second",
                (Field("plane_step", 20, "bytes to the plane of the lower bytes, each less 128; conv23: a "
                                         "multiple of 256; 0: the input is bytes. Excludes `accumulate` and `hold`"),)),
        Variant("set_shape", 4, "mac", "loop counts",
                (Field("tiles_x", 12, "tiles per row: conv23: output columns / 2, rounded up; else output columns"),
                 Field("runs", 14, "conv23: input channels; else 16-byte runs per kernel column; 1..16383")),
                (Field("kernel_x", 6, "kernel columns visited one by one (1 if a row is one run)"),
                 Field("kernel_y", 6, "kernel rows (1 for conv23)"))),
        Variant("set_tile_step", 5, "mac", "strides of the tiles",
                (Field("x_step", 20, "bytes to the next output column; conv23: to the next block (16 x channels)"),),
                (Field("y_step", 20, "bytes to the next output row; conv23: to the next block row, back if "
                       "they pass the end of the addresses"),)),
        Variant("set_kernel_step", 6, "mac", "strides inside the kernel",
                (Field("kernel_x_step", 20, "bytes to the next kernel column"),
                 Field("pair_words", 12, "conv, pool.sum: distance of bytes 8..15 of a run, in 16-byte words; 0: the "
                                         "run is contiguous")),
                (Field("kernel_y_step", 20, "bytes to the next kernel row"),)),
        Variant("set_group_step", 7, "mac", "input of the next lane group: 0, or for grouped convolution its distance",
                (Field("group_step", 20, "bytes (conv23: 16 x channels) to the input of the next lane group"),)),
    )),
    Instruction("act", 4, "bias, requantise, zero point, ReLU or clip, residual add, value table", (
        Variant("run", 0, "post", "pass the sums of one MAC command to the result buffer",
                (_RESULT, Field("rows", 10, "output rows before pooling"),
                 Field("winograd", 1, "the sums come from conv23: 2x2 outputs per tile"),
                 Field("shared", 1, "the pixels of a tile share the parameters of their channel, which they do anyhow "
                                    "but where channels are taken in pairs")),
                (Field("parameter_base", 12, "channel of the parameter buffer; a multiple of lanes"),
                 Field("channels", 12, "output channels; 1..4095"),
                 Field("residual", 1, "add the residual tile that lies where the results are written"),
                 Field("pooled", 1, "max-pool with the window of pool.window"),
                 Field("table", 1, "map each value by a table before the pooling"),
                 Field("table_slot", 2, "which of the value tables; 0 without `table`"),
                 Field("table_first", 1, "map each value before the residual is added instead of the sum; 0 unless "
                                         "both are used"),
                 Field("whole", 1, "leave the four bytes of each sum and its bias in place of a value, the least "
                                   "first, whatever its scale; excludes `residual`, `pooled` and `table`, and needs "
                                   "no clamp"),
                 Field("wide", 1, "results are words of 16 bits, in two planes, as pool.set_words says; with `table` "
                                  "all tables are their curve; excludes `residual`, `pooled` and `whole`")),
                _ACT),
        Variant("rows", 1, "post", "softmax or normalisation of rows of the result buffer, in place, by the value "
                                   "tables as one table of 256 words of 32 bits",
                (_RESULT, Field("length", 12, "bytes of a row; 1..4095, with `norm` at most 1024")),
                (Field("rows", 16, "rows, one behind the other; 1..65535"),
                 Field("norm", 1, "normalise by mean and deviation, as act.set_norm says")), _ACT),
        Variant("set_rows", 2, "post", "scale of act.rows, mantissa * 2**-shift: how many levels of the result stand "
                                       "for 1, or for a gain of 1",
                (Field("mantissa", 24, "its top bit is set"), Field("shift", 6, ""))),
        Variant("set_norm", 3, "post", "numbers of an act.rows with `norm`: isa.rows.row_norm",
                (Field("extra", 32, "is added to n**2 times the variance; four times with over 512 bytes"),),
                (Field("offset", 17, "what is taken from n x, of over 512 bytes from n/2 x, without `centred`",
                       signed=True),
                 Field("parameter_base", 12, "channel of the parameter buffer where gains and shifts begin; a multiple "
                                             "of post_lanes"),
                 Field("centred", 1, "the sum of a row is taken from n x"),
                 Field("fine", 1, "a root has 10 binary digits behind the point, not 8; of over 512 bytes 7, not 6"))),
        Variant("set_output", 4, "post", "shape of the output",
                (Field("width", 12, "output columns before pooling"),
                 Field("pixel_step", 12, "bytes between pixels in the result buffer")),
                (Field("row_step", 20, "bytes between rows in the result buffer"),)),
        Variant("set_clamp", 5, "post", "zero point and clamp of the requantisation",
                (Field("zero_point", 8, "added after rounding", signed=True),
                 Field("low", 8, "least value", signed=True),
                 Field("high", 8, "greatest value, not below the least", signed=True),
                 Field("integer_shift", 6, "by which sums are shifted right with `integer`"),
                 Field("integer", 1, "requantise by a multiplier, an addend and a shift, not by a float32 scale, "
                                     "which a machine without float_requantise takes for 1: "
                                     "isa.integers.shift_requantise")),
                (Field("integer_long", 1, "with `integer`: by a multiplier of 31 bits and a shift of each channel: "
                                          "isa.integers.long_requantise"),
                 Field("integer_twice", 1, "with `integer_long`: round twice, as gemmlowp does"))),
        Variant("set_residual_scale", 6, "post", "scales of the residual add: isa.numerics.add_residual",
                (Field("mantissa_a", 24, "of the first operand of the add"), Field("shift_a", 7, "")),
                (Field("mantissa_b", 24, "of the second operand"), Field("shift_b", 7, ""))),
        Variant("set_residual_offset", 7, "post", "offset and clamp of the residual add: isa.numerics.residual_offset",
                (Field("offset_mantissa", 24, ""), Field("offset_shift", 7, ""), Field("offset_negative", 1, "")),
                (Field("residual_low", 8, "least value", signed=True),
                 Field("residual_high", 8, "greatest value, not below the least", signed=True),
                 Field("unsigned", 1, "the model's tensors are uint8, 128 more than the bytes here"),
                 Field("own_second", 1, "the layer's own value is the second operand, the residual the first"))),
    )),
    Instruction("pool", 5, "max and average pooling of any window, global average", (
        Variant("sum", 0, "mac", "sum a window per channel (average; 1x1: pass through): lane l takes byte l of a run",
                _RUN_RS1, _RUN_RS2, _MAC),
        Variant("window", 1, "post", "the max window of the act commands that follow",
                (Field("kernel_x", 4, "columns of the window; 1..15"), Field("kernel_y", 4, "rows of the window"),
                 Field("stride_x", 3, "1..7"), Field("stride_y", 3, "1..7"),
                 Field("left", 4, "padding columns before the first"), Field("top", 4, "padding rows above")),
                (Field("width", 12, "pooled columns"), Field("rows", 10, "pooled rows of this tile"))),
        Variant("set_words", 2, "post", "results of 16 bits, of an act.run with `wide`",
                (Field("word_zero", 16, "zero point, added after rounding", signed=True),
                 Field("word_low", 16, "least value", signed=True)),
                (Field("word_high", 16, "greatest value, not below the least", signed=True),
                 Field("plane_words", 16, "16-byte words of the result buffer from the upper bytes of the results to "
                                          "the lower ones, each less 128"))),
    )),
    Instruction("sta", 6, "store a tile: to memory, or back into the activation buffer", (
        Variant("memory", 0, "store", "store rows of results to main memory",
                (_ADDRESS,), (_RESULT, _ROWS), _STA_MEMORY),
        Variant("linear", 1, "store", "copy rows of results to the activation buffer, linear layout",
                (_TARGET,), (_RESULT, _ROWS), _STA_LOCAL),
        Variant("blocked", 2, "store", "copy rows of results to the activation buffer, blocked: a run is a pixel",
                (_TARGET, Field("x", 2, "column of the first block at which to start"),
                 Field("channel", 8, "channel / 16 at which each pixel's run starts"), _Y),
                (_RESULT, _ROWS), _STA_LOCAL),
        Variant("status", 3, "store", "store the counters (isa.counters) once all stores before it are complete",
                (_ADDRESS,), ()),
        Variant("set_row", 4, "store", "a row is `chunks` runs of `chunk_bytes`",
                (Field("chunk_bytes", 16, "bytes of one run"), Field("chunks", 12, "runs per row")),
                (Field("chunk_step", 20, "bytes between runs in the result buffer"),)),
        Variant("set_source", 5, "store", "stride of the rows in the result buffer",
                (Field("row_step", 20, "bytes between rows in the result buffer"),)),
        Variant("set_target", 6, "store", "strides at the destination",
                (Field("target_chunk_step", 32, "bytes between runs; blocked: to the next block (16 x channels)"),),
                (Field("target_row_step", 32, "bytes between rows; blocked: between block rows"),)),
        Variant("fence", 7, "host", "block the core until every unit is idle and every write acknowledged; "
                                    "rd, if not x0, becomes the fault code",
                (Field("abort", 1, "1: stop all units, complete what the bus has begun, and restore the state after "
                                   "reset"),
                 Field("notify", 1, "1: do not block; raise the interrupt as soon as a fence would not block"),
                 Field("erase", 1, "1, with `abort`: erase all buffers, on a machine with erasure"))),
    )),
)

BY_MNEMONIC = {instruction.mnemonic: instruction for instruction in INSTRUCTIONS}

BY_CHANNEL = ("run_by_channel", "run_four_patches")
"""Variants of conv23 for depthwise layers, in which a lane multiplies a channel of its own alone."""

EXTENSION_FIELD_BITS = (19, 32)
"""Bits that an extension's own fields may take in rs1 and in rs2."""

UNIT_FIELD_BITS = 20
"""The same where the extension is a unit: in rs2."""

EXTENSION = Instruction("extension", 7, "an instruction that a user's file adds to a machine (isa/extension.py)", (
    Variant("set_stage", 0, "post", "turn the stage of an extension on or off, and set its fields",
            (Field("enable", 1, "1: it replaces the value tables in act commands without residual"),
             Field("channel", 12, "the layer's channel with which the act commands start"),
             Field("first", EXTENSION_FIELD_BITS[0], "the extension's own fields in rs1")),
            (Field("second", EXTENSION_FIELD_BITS[1], "the extension's own fields in rs2"),)),
    Variant("run_unit", 1, "mac", "pass items of the activation buffer through the unit of an extension",
            (Field("base", 20, "byte address of the first item in the activation buffer"),
             Field("items", 12, "number of consecutive items; 1..4095")),
            (Field("item_bytes", 12, "bytes of an item, the first of which become the result; 1..4095"),
             Field("own", UNIT_FIELD_BITS, "the extension's own fields")),
            (_wait("act_ready"), None, None, None)),
))
"""The eighth row, which a machine has only with an extension: its fields are opaque here."""

KNOWN = BY_MNEMONIC | {EXTENSION.mnemonic: EXTENSION}
"""Every instruction that can be encoded, that of extensions among them, by mnemonic."""


def check_table(instructions: tuple[Instruction, ...]) -> None:
    """Raise :exc:`EncodingError` if two codes clash, an operand is too wide, or a name is used twice."""
    funct3 = [instruction.funct3 for instruction in instructions]
    if len(set(funct3)) != len(funct3):
        raise EncodingError(f"Every instruction must have a funct3 of its own, not {funct3!r}")
    semaphores = {semaphore.name for semaphore in SEMAPHORES}
    for instruction in instructions:
        codes = [variant.code for variant in instruction.variants]
        if len(set(codes)) != len(codes) or not set(codes) <= set(range(8)):
            raise EncodingError(f"Variants of {instruction.mnemonic} must have different codes in 0..7, not {codes!r}")
        for variant in instruction.variants:
            where = f"{instruction.mnemonic}.{variant.name}"
            if (width := max(sum(f.width for f in operand) for operand in (variant.rs1, variant.rs2))) > 32:
                raise EncodingError(f"Operands of {where} must fit 32 bits, not {width!r}")
            names = [field.name for field in variant.fields]
            if len(set(names)) != len(names):
                raise EncodingError(f"Operand fields of {where} must have different names, not {names!r}")
            if unknown := {flag.semaphore for flag in variant.flags if flag is not None} - semaphores:
                raise EncodingError(f"Flags of {where} must name semaphores, not {sorted(unknown)!r}")
            if variant.unit not in UNITS:
                raise EncodingError(f"Unit of {where} must be one of {', '.join(UNITS)}, not {variant.unit!r}")


check_table((*INSTRUCTIONS, EXTENSION))
