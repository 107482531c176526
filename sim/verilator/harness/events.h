// The timer, the external interrupt and the debug request; the last two, if they shall come, at random times.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

class Events {
 public:
  // `mean_cycles` lie between an event's end and the next of its kind, on average; 0: there are none.
  Events(uint64_t mean_cycles, uint64_t seed) : mean_cycles_(mean_cycles), state_(seed * 2 + 1) {
    next_external_ = next_debug_ = UINT64_MAX;
    if (mean_cycles_) {
      next_external_ = after(0);
      next_debug_ = after(0);
    }
  }

  template <class Top>
  void drive(Top& top, uint64_t cycle) {
    top.irq_timer = cycle >= timer_;
    top.irq_external = cycle >= next_external_;
    top.debug_req = cycle >= next_debug_;
  }

  template <class Top>
  void sample(const Top& top, uint64_t cycle) {
    if (top.asleep && !asleep_) sleeps_.emplace_back(cycle, cycle);
    asleep_ = top.asleep;
    if (asleep_) sleeps_.back().second = cycle + 1;
  }

  void set_timer(uint32_t half, unsigned shift) {
    timer_ = (timer_ & ~(uint64_t{0xffffffff} << shift)) | uint64_t{half} << shift;
    timers_ += shift == 0;
  }
  void clear_external(uint64_t cycle) { clear(next_external_, externals_, cycle); }
  void clear_debug(uint64_t cycle) { clear(next_debug_, debugs_, cycle); }

  // xorshift64*
  uint32_t random() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return static_cast<uint32_t>(state_ * 0x2545f4914f6cdd1d >> 32);
  }

  uint64_t timers() const { return timers_; }        // settings of the timer
  uint64_t externals() const { return externals_; }  // interrupts dealt with
  uint64_t debugs() const { return debugs_; }        // halts
  // First cycle, and the one behind the last, of each time that the core slept.
  const std::vector<std::pair<uint64_t, uint64_t>>& sleeps() const { return sleeps_; }

 private:
  void clear(uint64_t& next, uint64_t& count, uint64_t cycle) {
    if (cycle < next) return;
    ++count;
    next = mean_cycles_ ? after(cycle) : UINT64_MAX;
  }

  // One in eight follows at once, so that events meet.
  uint64_t after(uint64_t cycle) {
    return cycle + 1 + (random() % 8 == 0 ? random() % 16 : random() % (2 * mean_cycles_));
  }

  uint64_t mean_cycles_;
  uint64_t state_;
  uint64_t timer_ = UINT64_MAX, next_external_, next_debug_;
  uint64_t timers_ = 0, externals_ = 0, debugs_ = 0;
  std::vector<std::pair<uint64_t, uint64_t>> sleeps_;
  bool asleep_ = false;
};
