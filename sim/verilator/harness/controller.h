// A DRAM controller: reads first, written bursts from a buffer; it answers a write before the DRAM has it.
//
// sim/timing/dram_bus.py is the same policy in the cycle model.
#pragma once

#include <cstdint>
#include <deque>

#include "dram.h"

// Bursts of one direction are served in order, as AXI demands of one ID. Reads go first; written bursts, once all their
// words are there, when no read waits, or when the buffer is half full: then all that are complete.
class DramController {
 public:
  explicit DramController(const DramNumbers& numbers) : t_(numbers), dram_(numbers) {}

  // Forgets what waits.
  void reset() {
    reads_.clear();
    writes_.clear();
    leaving_.clear();
    next_read_ = 0;
    buffered_ = 0;
    draining_ = false;
  }

  // Whether the buffer has room for another written word.
  bool has_room(uint64_t bytes) const { return buffered_ + bytes <= t_.write_buffer_bytes; }

  void take_word(uint64_t bytes) { buffered_ += bytes; }
  void write(uint64_t address, uint64_t bytes) { writes_.push_back({address, bytes, 0}); }
  void read(uint64_t address, uint64_t bytes) { reads_.push_back({address, bytes, 0}); }

  // Decides what is to be decided until this cycle.
  void step(uint64_t cycle) {
    now_ = cycle * t_.period;
    while (!leaving_.empty() && leaving_.front().at <= now_) {
      buffered_ -= leaving_.front().bytes;
      leaving_.pop_front();
    }
    while (dram_.free_at() <= now_ && (!writes_.empty() || next_read_ < reads_.size())) serve_one();
  }

  // Whether the word at `address` of the oldest read is there.
  bool word_there(uint64_t address, uint64_t bytes) const {
    if (next_read_ == 0) return false;
    const Burst& burst = reads_.front();
    const uint64_t access = (address + bytes - 1) / t_.access_bytes - burst.address / t_.access_bytes;
    return burst.at + (access + 1) * t_.access + t_.controller <= now_;
  }

  // The last word of the oldest read has left.
  void finish_read() {
    reads_.pop_front();
    --next_read_;
  }

 private:
  struct Burst {
    uint64_t address, bytes;
    uint64_t at;  // of a read, the start of its data; of what leaves the buffer, when it is gone
  };

  void serve_one() {
    const bool reads_wait = next_read_ < reads_.size();
    draining_ = !writes_.empty() && (draining_ || 2 * buffered_ >= t_.write_buffer_bytes);
    if (draining_ || !reads_wait) {
      const Burst burst = writes_.front();
      writes_.pop_front();
      leaving_.push_back({0, burst.bytes, dram_.serve(true, burst.address, burst.bytes, now_).end});
    } else {
      Burst& burst = reads_[next_read_++];
      burst.at = dram_.serve(false, burst.address, burst.bytes, now_).start;
    }
  }

  DramNumbers t_;
  Dram dram_;
  std::deque<Burst> reads_, writes_, leaving_;
  size_t next_read_ = 0;  // the first of `reads_` that is not served
  uint64_t buffered_ = 0, now_ = 0;
  bool draining_ = false;
};
