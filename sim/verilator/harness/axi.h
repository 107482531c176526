// Main memory behind the coprocessor's AXI4 port: a latency per burst, then a budget of bytes per cycle.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>

#include "memory.h"

// The first word of a read burst comes `latency_cycles` after its address, and so does the response to a write
// after its last word; bursts wait side by side. Reads and writes share the budget word by word, in turn. A
// burst outside main memory is answered with DECERR.
template <class Top, unsigned kBusBytes>
class AxiMemory {
 public:
  // SLVERR answers the read burst number `fail_read` and the write burst number `fail_write`, from 1 on.
  AxiMemory(Memory& memory, uint64_t latency_cycles, uint64_t bytes_per_cycle, uint64_t fail_read, uint64_t fail_write)
      : memory_(memory), latency_(latency_cycles), rate_(bytes_per_cycle), fail_read_(fail_read),
        fail_write_(fail_write) {}

  uint64_t words_read() const { return words_read_; }
  uint64_t words_written() const { return words_written_; }
  uint64_t read_bursts() const { return read_bursts_; }
  uint64_t write_bursts() const { return write_bursts_; }

  // Sets the inputs of this cycle; they depend on earlier cycles only.
  void drive(Top& top, uint64_t cycle) {
    budget_ = std::min(budget_ + rate_, std::max<uint64_t>(rate_, kBusBytes));
    top.m_axi_arready = reads_.size() < kOutstanding;
    top.m_axi_awready = writes_.size() < kOutstanding;

    const bool read_due = !reads_.empty() && reads_.front().due <= cycle;
    const bool write_first = write_waits_ && last_was_read_ && budget_ < 2 * kBusBytes;
    // VALID once high stays high until READY; a word that waits has been paid for, and holds up no writes.
    if (!read_offered_ && read_due && budget_ >= kBusBytes && !write_first) {
      offer_read(top);
      budget_ -= kBusBytes;
      read_offered_ = true;
    }
    top.m_axi_rvalid = read_offered_;
    top.m_axi_wready = !writes_.empty() && budget_ >= kBusBytes;

    top.m_axi_bvalid = !responses_.empty() && responses_.front().due <= cycle;
    if (top.m_axi_bvalid) top.m_axi_bresp = responses_.front().error;
  }

  // Takes what the outputs of this cycle say; returns whether a word or response moved.
  bool sample(const Top& top, uint64_t cycle) {
    bool moved = false;
    if (top.m_axi_rvalid && top.m_axi_rready) {
      moved = last_was_read_ = true;
      read_offered_ = false;
      ++words_read_;
      Burst& burst = reads_.front();
      burst.address += kBusBytes;
      if (--burst.beats == 0) reads_.pop_front();
    }
    write_waits_ = top.m_axi_wvalid && !top.m_axi_wready;
    if (top.m_axi_wvalid && top.m_axi_wready) {
      moved = true;
      last_was_read_ = false;
      take_word(top, cycle);
    }
    if (top.m_axi_bvalid && top.m_axi_bready) {
      moved = true;
      responses_.pop_front();
    }
    if (top.m_axi_arvalid && top.m_axi_arready)
      reads_.push_back(burst(top.m_axi_araddr, top.m_axi_arlen, cycle, ++read_bursts_ == fail_read_));
    if (top.m_axi_awvalid && top.m_axi_awready)
      writes_.push_back(burst(top.m_axi_awaddr, top.m_axi_awlen, cycle, ++write_bursts_ == fail_write_));
    return moved;
  }

 private:
  static constexpr size_t kOutstanding = 32;
  static constexpr unsigned kSlaveError = 2, kDecodeError = 3;
  struct Burst {
    uint32_t address;
    uint32_t beats;
    uint64_t due;
    unsigned error;  // the response
  };

  Burst burst(uint32_t address, unsigned length, uint64_t cycle, bool fails) {
    const uint32_t beats = length + 1;
    const bool exists = in_main(address) && memory_.find(address, uint64_t{beats} * kBusBytes) != nullptr;
    return {address, beats, cycle + latency_, !exists ? kDecodeError : fails ? kSlaveError : 0};
  }

  void offer_read(Top& top) {
    const Burst& burst = reads_.front();
    if (!burst.error) std::memcpy(&top.m_axi_rdata, memory_.find(burst.address, kBusBytes), kBusBytes);
    top.m_axi_rresp = burst.error;
    top.m_axi_rlast = burst.beats == 1;
  }

  void take_word(const Top& top, uint64_t cycle) {
    Burst& burst = writes_.front();
    budget_ -= kBusBytes;
    ++words_written_;
    if (!burst.error) {
      uint8_t* target = memory_.find(burst.address, kBusBytes);
      const auto* source = reinterpret_cast<const uint8_t*>(&top.m_axi_wdata);
      for (unsigned i = 0; i < kBusBytes; ++i)
        if (top.m_axi_wstrb >> i & 1) target[i] = source[i];
    }
    burst.address += kBusBytes;
    if (--burst.beats == 0) {
      responses_.push_back({0, 0, cycle + latency_, burst.error});
      writes_.pop_front();
    }
  }

  Memory& memory_;
  uint64_t latency_, rate_, budget_ = 0;
  std::deque<Burst> reads_, writes_, responses_;
  bool read_offered_ = false, write_waits_ = false, last_was_read_ = false;
  uint64_t words_read_ = 0, words_written_ = 0, read_bursts_ = 0, write_bursts_ = 0, fail_read_, fail_write_;
};
