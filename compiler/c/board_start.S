/* Start-up code on a board: clear .bss, serve; a trap is reported and ends it. */

#define MCOUNTINHIBIT 0x320

#if !defined(__clang__) && !defined(__riscv_zicsr)
.option arch, +zicsr                    /* GCC's libraries for rv32imc are not found with _zicsr in -march */
#endif

.section .vectors, "ax"
.globl _vectors
_vectors:                               /* mtvec: exceptions and interrupts alike */
    j trap

.org 0x80                               /* boot address of the core */
.globl _start
_start:
    la sp, _stack_top
    csrwi MCOUNTINHIBIT, 0              /* let mcycle count */
    la a0, __bss_start
    la a1, __bss_end
1:  bgeu a0, a1, 2f
    sw zero, 0(a0)
    addi a0, a0, 4
    j 1b
2:  j serve

trap:
    la sp, _stack_top
    csrr a0, mepc
    csrr a1, mcause
    j report_trap
