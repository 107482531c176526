/* The weights, as a section that a linker script may put anywhere that the coprocessor can read: RAM or flash. */
.section .tilewright_weights, "a"
.balign 64
.globl tilewright_weights
tilewright_weights:
.incbin "weights.bin"
