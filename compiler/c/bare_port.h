/* What a platform gives the model: windows, the fault's address, and memory that core and coprocessor see alike.
 *
 * port.c has them for Tilewright's reference system (hardware/board/rtl); write yours for another one. */
#pragma once
#include <stdint.h>

/* Let the coprocessor reach [base, limit): rights 1 to read, 2 to write, 3 both, 0 nothing. There are four windows. */
void tw_port_set_window(uint32_t index, uint32_t base, uint32_t limit, uint32_t rights);

/* The address that the coprocessor gives with its fault; 0 where the platform cannot tell. */
uint32_t tw_port_fault_address(void);

/* Write the core's data cache back, and forget what it holds; nothing to do without one. */
void tw_port_before_run(void);
void tw_port_after_run(void);

/* For the example only: start the platform, and write a character. */
void tw_port_start(void);
void tw_port_put(char character);
