/* Issues the instruction words of a table one after the other, a fence behind each command, and notes how it ended. */
#include "tilewright.h"

struct entry {
    uint32_t word, rs1, rs2, fenced;
};

struct note {
    uint32_t code, address, trapped, last;
};

#define COUNT (*(volatile uint32_t *)TABLE)
#define ENTRIES ((volatile struct entry *)(TABLE + 16))
#define NOTES ((volatile struct note *)TABLE_NOTES)
#define RECORD ((volatile uint32_t *)TABLE_RECORD)
#define RETURN 0x00008067u

static volatile uint32_t stub[64] __attribute__((aligned(256)));
volatile uint32_t trapped;

/* An instruction that nobody takes is skipped. Registers that a call may change are free here. */
__asm__(".align 8\n"
        "skip:\n"
        "    csrr t0, mepc\n"
        "    addi t0, t0, 4\n"
        "    csrw mepc, t0\n"
        "    csrr t1, mcause\n"
        "    la   t0, trapped\n"
        "    sw   t1, 0(t0)\n"
        "    mret\n");
extern void skip(void);

int main(void)
{
    __asm__ volatile("csrw mtvec, %0" : : "r"(skip));
    stub[1] = RETURN;
    for (uint32_t i = 0; i < COUNT; i++) {
        trapped = 0;
        stub[0] = ENTRIES[i].word;
        __asm__ volatile("" : : : "memory");
        ((void (*)(uint32_t, uint32_t))(uintptr_t)stub)(ENTRIES[i].rs1, ENTRIES[i].rs2);
        NOTES[i].trapped = trapped;
        if (!ENTRIES[i].fenced)
            continue;
        uint32_t code = tw_sta_fence();
        NOTES[i].code = code;
        if (code) {
            tw_sta_status((uint32_t)(uintptr_t)RECORD);
            tw_sta_fence();
            NOTES[i].address = RECORD[31];
            if (tw_sta_abort())
                return 1;
        }
    }
    return 0;
}
