/* The port to Tilewright's reference system: registers of hardware/board/rtl/board_devices.sv. */
#include "port.h"

#ifndef CYCLES_PER_BIT
#define CYCLES_PER_BIT 217 /* of the serial line: 25 MHz / 115,200 baud */
#endif

#define REGISTER(offset) (*(volatile uint32_t *)(0x20000000u + (offset)))
#define UART_DATA REGISTER(0x00)
#define UART_STATUS REGISTER(0x04)
#define UART_DIVIDER REGISTER(0x08)
#define FAULT_ADDRESS REGISTER(0x14)
#define WINDOW(i, word) REGISTER(0x40 + 16 * (i) + 4 * (word))
#define CAN_SEND 2u

int main(void);
void serve(void) __attribute__((noreturn));
void report_trap(uint32_t pc, uint32_t cause) __attribute__((noreturn));

void tw_port_set_window(uint32_t index, uint32_t base, uint32_t limit, uint32_t rights)
{
    WINDOW(index, 0) = base;
    WINDOW(index, 1) = limit;
    WINDOW(index, 2) = rights;
}

uint32_t tw_port_fault_address(void)
{
    return FAULT_ADDRESS;
}

void tw_port_before_run(void)
{
    __asm__ volatile("fence" : : : "memory");
}

void tw_port_after_run(void)
{
    __asm__ volatile("fence" : : : "memory");
}

void tw_port_start(void)
{
    UART_DIVIDER = CYCLES_PER_BIT;
}

void tw_port_put(char character)
{
    while (!(UART_STATUS & CAN_SEND))
        ;
    UART_DATA = (uint8_t)character;
}

/* start.S comes here. */
void serve(void)
{
    main();
    for (;;)
        ;
}

/* start.S comes here at an exception. */
void report_trap(uint32_t pc, uint32_t cause)
{
    (void)pc;
    (void)cause;
    for (const char *text = "trap\n"; *text; text++)
        tw_port_put(*text);
    for (;;)
        ;
}
