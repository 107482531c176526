// The core's two OBI ports: RAM and devices answer in the next cycle, main memory after its latency.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "debug_rom.h"
#include "events.h"
#include "memory.h"

// Code comes from RAM or the debug ROM, always in the next cycle. What is not there answers with an error, because the core
// fetches ahead of jumps; it becomes an exception if it is executed.
template <class Top>
class InstructionPort {
 public:
  explicit InstructionPort(Memory& memory) : memory_(memory) {}

  // Forgets what is outstanding.
  void reset() { valid_ = false; }

  void drive(Top& top) const {
    top.instr_gnt = 1;
    top.instr_rvalid = valid_;
    top.instr_rdata = data_;
    top.instr_err = error_;
  }

  void sample(const Top& top) {
    valid_ = top.instr_req;
    if (!valid_) return;
    const uint32_t address = top.instr_addr & ~3u;
    const void* source = memory_.find(address, 4);
    if (source == nullptr) source = debug_rom_word(address);
    error_ = source == nullptr;
    if (!error_) std::memcpy(&data_, source, 4);
  }

 private:
  Memory& memory_;
  bool valid_ = false;
  bool error_ = false;
  uint32_t data_ = 0;
};

// What stores to the devices have said.
struct Devices {
  bool exited = false;
  uint32_t exit_code = 0;
  bool trapped = false;
  uint32_t trap_pc = 0;
  uint32_t trap_cause = 0;
  std::vector<std::pair<uint32_t, uint64_t>> marks;  // number, cycle
};

template <class Top>
class DataPort {
 public:
  DataPort(Memory& memory, Events& events, uint64_t main_latency)
      : memory_(memory), events_(events), main_latency_(main_latency) {}

  const Devices& devices() const { return devices_; }
  bool failed() const { return failed_; }
  uint32_t failed_address() const { return failed_address_; }

  // Forgets what is outstanding.
  void reset() { head_ = tail_; }

  void drive(Top& top, uint64_t cycle) {
    top.data_gnt = 1;
    top.data_rvalid = head_ != tail_ && responses_[head_ % kDepth].due <= cycle;
    if (top.data_rvalid) top.data_rdata = responses_[head_++ % kDepth].data;
  }

  void sample(const Top& top, uint64_t cycle) {
    if (!top.data_req) return;
    const uint32_t address = top.data_addr & ~3u;
    uint64_t due = cycle + 1;
    uint32_t data = 0;
    if (uint8_t* word = memory_.find(address, 4)) {
      if (in_main(address)) due = cycle + main_latency_;
      if (top.data_we) store(word, top.data_wdata, top.data_be);
      else std::memcpy(&data, word, 4);
    } else if (top.data_we && in_devices(address)) {
      write_device(address, top.data_wdata, cycle);
    } else if (in_devices(address) && address >= kTime) {
      data = address == kTime ? static_cast<uint32_t>(cycle) : events_.random();
    } else {
      failed_ = true;
      failed_address_ = top.data_addr;
    }
    if (due <= last_due_) due = last_due_ + 1;  // in order
    last_due_ = due;
    responses_[tail_++ % kDepth] = {due, data};
  }

 private:
  static constexpr unsigned kDepth = 16;  // the core has two requests outstanding at most
  struct Response {
    uint64_t due;
    uint32_t data;
  };

  static void store(uint8_t* word, uint32_t data, unsigned enable) {
    for (unsigned i = 0; i < 4; ++i)
      if (enable >> i & 1) word[i] = static_cast<uint8_t>(data >> 8 * i);
  }

  void write_device(uint32_t address, uint32_t value, uint64_t cycle) {
    switch (address) {
      case kPutchar: std::putchar(static_cast<int>(value & 0xff)); break;
      case kExit: devices_.exited = true; devices_.exit_code = value; break;
      case kTrapPc: devices_.trap_pc = value; break;
      case kTrapCause: devices_.trapped = true; devices_.trap_cause = value; break;
      case kMark: devices_.marks.emplace_back(value, cycle); break;
      case kTimerCompare: events_.set_timer(value, 0); break;
      case kTimerCompare + 4: events_.set_timer(value, 32); break;
      case kExternalClear: events_.clear_external(cycle); break;
      case kDebugClear: events_.clear_debug(cycle); break;
    }
  }

  Memory& memory_;
  Events& events_;
  uint64_t main_latency_;
  Response responses_[kDepth] = {};
  unsigned head_ = 0, tail_ = 0;
  uint64_t last_due_ = 0;
  Devices devices_;
  bool failed_ = false;
  uint32_t failed_address_ = 0;
};
