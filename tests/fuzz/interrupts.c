/* Around a network: interrupts at any time, whose handlers use the bus, sleep, and let others interrupt them. */
#define DEVICE(offset) (*(volatile uint32_t *)(0x10000000u + (offset)))
#define TRAP_PC DEVICE(0x08)
#define TRAP_CAUSE DEVICE(0x0c)
#define TIMER_LOW DEVICE(0x20)
#define TIMER_HIGH DEVICE(0x24)
#define EXTERNAL_CLEAR DEVICE(0x28)
#define TIME DEVICE(0x30)
#define RANDOM DEVICE(0x34)
#define TIMER 7
#define EXTERNAL 11
#define SCRATCH ((volatile uint32_t *)INTERRUPT_SCRATCH) /* 64 words of main memory that the network does not use */

__asm__(
    ".section .text.interrupts, \"ax\"\n"
    ".option push\n.option norvc\n"
    ".balign 256\n"
    "interrupt_vectors:\n"
    ".rept 32\n j interrupt_entry\n .endr\n"
    "interrupt_entry:\n"
    " addi sp, sp, -80\n"
    " sw ra, 0(sp)\n sw t0, 4(sp)\n sw t1, 8(sp)\n sw t2, 12(sp)\n sw t3, 16(sp)\n sw t4, 20(sp)\n"
    " sw t5, 24(sp)\n sw t6, 28(sp)\n sw a0, 32(sp)\n sw a1, 36(sp)\n sw a2, 40(sp)\n sw a3, 44(sp)\n"
    " sw a4, 48(sp)\n sw a5, 52(sp)\n sw a6, 56(sp)\n sw a7, 60(sp)\n"
    " csrr a1, mepc\n sw a1, 64(sp)\n csrr t0, mstatus\n sw t0, 68(sp)\n csrr a0, mcause\n"
    " call on_interrupt\n"
    " csrci mstatus, 8\n"
    " lw t0, 68(sp)\n csrw mstatus, t0\n lw t0, 64(sp)\n csrw mepc, t0\n"
    " lw ra, 0(sp)\n lw t0, 4(sp)\n lw t1, 8(sp)\n lw t2, 12(sp)\n lw t3, 16(sp)\n lw t4, 20(sp)\n"
    " lw t5, 24(sp)\n lw t6, 28(sp)\n lw a0, 32(sp)\n lw a1, 36(sp)\n lw a2, 40(sp)\n lw a3, 44(sp)\n"
    " lw a4, 48(sp)\n lw a5, 52(sp)\n lw a6, 56(sp)\n lw a7, 60(sp)\n"
    " addi sp, sp, 80\n"
    " mret\n"
    ".option pop\n.text\n");
extern char interrupt_vectors[];

static uint32_t depth, wrong;
static volatile uint32_t ram[64]; /* zeros, but for as long as a handler takes to change them back */

static void set_timer(uint32_t random)
{
    TIMER_HIGH = 0;
    TIMER_LOW = TIME + (random % 8u ? random % (2u * TIMER_CYCLES) : random % 16u);
}

/* What a handler does: some words of main memory and of RAM are read, changed and written. */
static void use_the_bus(uint32_t random)
{
    for (uint32_t i = 0; i <= random % 4u; ++i) {
        uint32_t word = (random >> 8) + i;
        if (SCRATCH[word % 64u] != (word % 64u) * 0x01010101u)
            ++wrong;
        SCRATCH[word % 64u] = (word % 64u) * 0x01010101u;
        ram[word % 64u] += word;
        ram[word % 64u] -= word;
    }
}

__attribute__((used)) void on_interrupt(uint32_t cause, uint32_t pc)
{
    if ((int32_t)cause >= 0) {
        TRAP_PC = pc;
        TRAP_CAUSE = cause;
    }
    uint32_t random = RANDOM;
    if ((cause & 31u) == EXTERNAL) {
        EXTERNAL_CLEAR = 0;
    } else if ((cause & 31u) == TIMER) {
        set_timer(random >> 4);
        if (random % 4u == 0)
            __asm__ volatile("wfi" : : : "memory"); /* until the timer or somebody else comes */
    } else {
        ++wrong;
    }
    if (random % 8u == 1 && depth < 3u) {
        ++depth;
        __asm__ volatile("csrsi mstatus, 8" : : : "memory");
        use_the_bus(random >> 3);
        __asm__ volatile("csrci mstatus, 8" : : : "memory");
        --depth;
    } else {
        use_the_bus(random >> 3);
    }
}

int main(void)
{
    for (uint32_t i = 0; i < 64u; ++i)
        SCRATCH[i] = i * 0x01010101u;
#if DISTURBED
    __asm__ volatile("csrw mtvec, %0" : : "r"((uint32_t)(uintptr_t)interrupt_vectors | 1u));
    set_timer(RANDOM);
    __asm__ volatile("csrw mie, %0\n\tcsrsi mstatus, 8" : : "r"(1u << TIMER | 1u << EXTERNAL) : "memory");
#endif
    int code = run_network();
    __asm__ volatile("csrci mstatus, 8" : : : "memory");
    for (uint32_t i = 0; i < 64u; ++i)
        wrong += SCRATCH[i] != i * 0x01010101u || ram[i] != 0;
    return code ? code : wrong ? 100 : 0;
}
