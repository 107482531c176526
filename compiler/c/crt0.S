/* Start-up code: clear .bss, call main, hand its result or the cause of a trap to the simulator. */

#define DEVICE_EXIT   0x10000004        /* a store ends the run with this exit code */
#define DEVICE_TRAP   0x10000008        /* mepc, then at + 4 mcause: ends the run as trapped */
#define MCOUNTINHIBIT 0x320

.section .vectors, "ax"
.globl _vectors
_vectors:                               /* mtvec: exceptions and interrupts alike */
    j trap

.org 0x80                               /* boot address of the core */
.globl _start
_start:
    la sp, _stack_top
    csrwi MCOUNTINHIBIT, 0              /* let mcycle and minstret count */
    la a0, __bss_start
    la a1, __bss_end
1:  bgeu a0, a1, 2f
    sw zero, 0(a0)
    addi a0, a0, 4
    j 1b
2:  call main
    li t0, DEVICE_EXIT
    sw a0, 0(t0)
3:  j 3b

trap:
    li t0, DEVICE_TRAP
    csrr t1, mepc
    sw t1, 0(t0)
    csrr t1, mcause
    sw t1, 4(t0)
4:  j 4b
