// Random stalls: whether a channel is held up in a cycle, and whether what AXI leaves open comes early or late.
#pragma once

#include <cstdint>

class Stalls {
 public:
  Stalls(uint64_t percent, uint64_t seed) : percent_(percent), state_(seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du) {}

  bool any() const { return percent_ != 0; }
  bool hold() { return percent_ != 0 && draw() % 100 < percent_; }
  bool coin() { return percent_ != 0 && (draw() & 1); }

 private:
  // xorshift64*
  uint64_t draw() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1du >> 32;
  }

  uint64_t percent_, state_;
};
