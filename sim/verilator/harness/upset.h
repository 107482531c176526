// A bit of one queue that turns over in one cycle: what the queues of a build with upsets ask for (sim/verilog/upsets.py).
#pragma once

#include <cstdint>

struct Upset {
  uint64_t at;
  uint64_t queue;
  uint64_t bit;
  uint64_t cycle = 0;
};

Upset& upset();
