/* Functions that a platform provides: windows, the fault's address, and coherence of the core's cache.
 *
 * port.c implements them for Tilewright's reference system (hardware/board/rtl); write your own for another system. */
#pragma once
#include <stdint.h>

/* Let the coprocessor access [base, limit): rights are 1 to read, 2 to write, 3 both, 0 none. There are four windows. */
void tw_port_set_window(uint32_t index, uint32_t base, uint32_t limit, uint32_t rights);

/* Return the coprocessor's fault address; 0 if the platform cannot read it. */
uint32_t tw_port_fault_address(void);

/* Write back the core's data cache before a run, and invalidate it after; empty without a cache. */
void tw_port_before_run(void);
void tw_port_after_run(void);

/* For the example only: start the platform, and write a character. */
void tw_port_start(void);
void tw_port_put(char character);
