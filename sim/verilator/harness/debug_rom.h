// The code that a debug request has the core run: it uses the bus, lowers the request and resumes.
#pragma once

#include <cstdint>

#include "memory.h"

// The word of the debug ROM at an address, or nullptr.
inline const uint32_t* debug_rom_word(uint32_t address) {
  static constexpr uint32_t kWords[] = {
      0x0180006f,  //            j      halted
      0x00000013,  //            nop
      0x100002b7,  // exception: lui    t0, 0x10000      # the run ends as trapped
      0x0002a423,  //            sw     zero, 8(t0)
      0x0052a623,  //            sw     t0, 12(t0)
      0x0000006f,  //            j      .
      0x7b229073,  // halted:    csrw   dscratch0, t0
      0x7b331073,  //            csrw   dscratch1, t1
      0x100002b7,  //            lui    t0, 0x10000
      0x0342a303,  //            lw     t1, 0x34(t0)     # a random number
      0x0202a623,  //            sw     zero, 0x2c(t0)   # lowers the request
      0x80000337,  //            lui    t1, 0x80000
      0x00032303,  //            lw     t1, 0(t1)        # main memory
      0x7b302373,  //            csrr   t1, dscratch1
      0x7b2022f3,  //            csrr   t0, dscratch0
      0x7b200073,  //            dret
  };
  const uint32_t index = (address - kDebugRom) / 4;
  return index < sizeof kWords / sizeof *kWords ? kWords + index : nullptr;
}
