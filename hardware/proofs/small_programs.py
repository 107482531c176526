"""Families of small programs: all sequences of a few commands on a few bytes, with any of their semaphore flags."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

from tilewright.compiler.schedule.races import Sizes
from tilewright.isa.assembler import EncodedCommand, command
from tilewright.isa.memory import MAIN_BASE

__all__ = ["FAMILIES", "SETTINGS", "Family", "Letter"]

SETTINGS = (
    command("lda", "set_row", chunk_bytes=16, chunks=1, memory_chunk_step=0),
    command("lda", "set_step", memory_row_step=0, row_step=0),
    command("lda", "set_layout", chunk_step=0, channels=16, left=0, right=0, value=0),
    command("ldw", "set_coded", words=1),
    command("conv", "set_shape", tiles_x=1, runs=1, kernel_x=1, kernel_y=1),
    command("conv", "set_tile_step", x_step=0, y_step=0),
    command("conv", "set_kernel_step", kernel_x_step=0, pair_words=0, kernel_y_step=0),
    command("conv", "set_group_step", group_step=0),
    command("act", "set_output", width=1, pixel_step=16, row_step=0),
    command("sta", "set_row", chunk_bytes=16, chunks=1, chunk_step=0),
    command("sta", "set_source", row_step=0),
    command("sta", "set_target", target_chunk_step=0, target_row_step=0),
)
"""Commands with which every program begins: after them each command touches 16 bytes of a buffer."""

Letter = tuple[EncodedCommand, ...]
"""Commands that come one behind the other, or one alone."""


@dataclass(frozen=True, slots=True)
class Family:
    """Programs of at most ``length`` letters; ``sizes`` are smaller than any machine's, so that they are reached."""

    name: str
    letters: tuple[Letter, ...]
    length: int
    sizes: Sizes


def _any(mnemonic: str, variant: str, flags: str, **operands: int) -> Iterator[Letter]:
    """Yield the command with every subset of the flags."""
    names = flags.split()
    for chosen in chain.from_iterable(combinations(names, count) for count in range(len(names) + 1)):
        yield (command(mnemonic, variant, chosen, **operands),)


def _load(base: int, flags: str, place: int = 0) -> Iterator[Letter]:
    return _any("lda", "linear", flags, address=MAIN_BASE + place, base=base, rows=1, y=0)


def _array(base: int, flags: str, *, hold: int = 1) -> Iterator[Letter]:
    return _any("conv", "run", flags, base=base, tiles_y=1, weight_base=0, groups=1, accumulate=0, hold=hold)


def _post(flags: str) -> Iterator[Letter]:
    return _any("act", "run", flags, base=0, rows=1, parameter_base=0, channels=8)


def _store(flags: str) -> Iterator[Letter]:
    return _any("sta", "memory", flags, address=MAIN_BASE, base=0, rows=1)


def _copy(flags: str) -> Iterator[Letter]:
    return _any("sta", "linear", flags, target=0, base=0, rows=1)


def _behind(first: Sequence[Letter], then: Iterator[Letter]) -> Iterator[Letter]:
    """Yield the commands of ``then``, each right behind the first letter."""
    return ((*first[0], *letter) for letter in then)


def _residual(flags: str, place: int) -> Iterator[Letter]:
    return _any("lda", "residual", flags, address=MAIN_BASE + place, base=0, rows=1)


_SUMS = tuple(_array(64, "", hold=0))
_READ = tuple(_array(0, "wait_act_ready", hold=0))[1:]
_FENCE = (command("sta", "fence", abort=0, notify=0),)

FAMILIES = (
    Family("loads and the array", (*_load(0, "wait_act_free signal_act_ready"), *_load(32, "signal_act_ready"),
                                   *_array(0, "wait_act_ready signal_act_free")), 5, Sizes(1, 1)),
    Family("rings of two places", (*_load(0, "wait_act_free signal_act_ready"),
                                   *_load(16, "wait_act_free signal_act_ready"),
                                   *_array(0, "wait_act_ready signal_act_free"),
                                   *_array(16, "wait_act_ready signal_act_free")), 4, Sizes(1, 2)),
    Family("weights and activations", (*_load(0, "signal_act_ready"),
                                       *_any("ldw", "main", "wait_wgt_free signal_wgt_ready", address=MAIN_BASE, base=0,
                                             words=1),
                                       *_array(0, "wait_act_ready wait_wgt_ready signal_wgt_free")), 4, Sizes(1, 2)),
    Family("coded weights", (*_any("ldw", "coded_main", "wait_wgt_free signal_wgt_ready", address=MAIN_BASE, base=0,
                                   steps=2),
                             *_load(0, ""), *_array(0, "wait_wgt_ready signal_wgt_free")), 4, Sizes(1, 2)),
    Family("sums and results", (*_array(64, "", hold=0), *_post("wait_out_free signal_out_ready"),
                                *_store("wait_out_ready signal_out_free"), _FENCE), 5, Sizes(1, 2)),
    Family("results in memory", (*_store("signal_mem_ready"), *_load(0, "wait_mem_ready"), *_load(0, "", 64),
                                 *_copy(""), _FENCE), 4, Sizes(1, 2)),
    Family("copies beside loads", (*_copy("signal_res_free signal_act_ready"), *_residual("wait_res_free", 64),
                                   *_load(0, "signal_act_ready"), *_load(32, "signal_act_ready"),
                                   *_array(0, "wait_act_ready")), 4, Sizes(1, 2)),
    Family("residuals", (*_residual("wait_res_free signal_res_ready", 64), *_load(0, "signal_act_ready", 64),
                         *_behind(_SUMS, _post("wait_res_ready")), *_behind(_READ, _post("wait_res_ready")),
                         *_store("signal_res_free")), 4, Sizes(1, 2)),
    Family("residuals out of memory", (*_residual("wait_res_free wait_mem_ready", 0),
                                       *_store("signal_res_free signal_mem_ready")), 5, Sizes(1, 2)),
    Family("parameters", (*_any("ldw", "parameters", "wait_par_free signal_wgt_ready", address=MAIN_BASE, base=0,
                                words=2),
                          *_array(0, "wait_wgt_ready", hold=0), *_post("signal_par_free")), 6, Sizes(1, 2)),
    Family("a queue that is full", (*_array(64, "wait_act_ready", hold=0), *_post("signal_out_ready"),
                                    *_copy("wait_out_ready signal_act_ready")), 6, Sizes(1, 3)),
)
