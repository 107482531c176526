// Main memory behind the coprocessor's AXI4 port: a latency per burst, then a budget of bytes per cycle; or DRAM.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "controller.h"
#include "memory.h"
#include "options.h"
#include "stalls.h"

// The first word of a read burst comes `latency_cycles` after its address, and so does the response to a write
// after its last word; bursts wait side by side. Reads and writes share the budget word by word, in turn. A
// burst outside main memory is answered with DECERR. With DRAM, its controller says when a word is there.
//
// With random stalls, what AXI does not order is drawn too: a read sees memory when its address is taken or when its
// words leave, and written words are in memory at once or only with their response.
template <class Top, unsigned kBusBytes>
class AxiMemory {
 public:
  AxiMemory(Memory& memory, const Options& options)
      : memory_(memory), latency_(options.latency_cycles), rate_(options.bytes_per_cycle),
        fail_read_(options.fail_read), fail_write_(options.fail_write), fail_response_(options.fail_response),
        stalls_(options.stall_percent, options.stall_seed) {
    if (!options.dram) return;
    dram_ = std::make_unique<DramController>(*options.dram);
    // The pins of the DRAM limit the rate; the bus moves a word each way.
    latency_ = (options.dram->controller + options.dram->period - 1) / options.dram->period;
    rate_ = 2 * kBusBytes;
  }

  // Forgets what is outstanding, as a reset of the bus does; rows of DRAM stay as they are.
  void reset() {
    reads_.clear();
    writes_.clear();
    responses_.clear();
    late_.clear();
    if (dram_) dram_->reset();
    read_offered_ = response_offered_ = write_waits_ = last_was_read_ = false;
  }

  uint64_t words_read() const { return words_read_; }
  uint64_t words_written() const { return words_written_; }
  uint64_t bytes_written() const { return bytes_written_; }
  uint64_t read_bursts() const { return read_bursts_; }
  uint64_t write_bursts() const { return write_bursts_; }

  // Sets the inputs of this cycle; they depend on earlier cycles only.
  void drive(Top& top, uint64_t cycle) {
    budget_ = std::min(budget_ + rate_, std::max<uint64_t>(rate_, kBusBytes));
    if (dram_) dram_->step(cycle);
    top.m_axi_arready = reads_.size() < kOutstanding && !stalls_.hold();
    top.m_axi_awready = writes_.size() < kOutstanding && !stalls_.hold();

    const bool write_first = write_waits_ && last_was_read_ && budget_ < 2 * kBusBytes;
    // VALID once high stays high until READY; a word that waits has been paid for, and holds up no writes.
    if (!read_offered_ && read_due(cycle) && budget_ >= kBusBytes && !write_first && !stalls_.hold()) {
      offer_read(top);
      budget_ -= kBusBytes;
      read_offered_ = true;
    }
    top.m_axi_rvalid = read_offered_;
    top.m_axi_wready = !writes_.empty() && budget_ >= kBusBytes && (!dram_ || dram_->has_room(kBusBytes)) &&
                       !stalls_.hold();

    if (!response_offered_ && !responses_.empty() && responses_.front().due <= cycle && !stalls_.hold()) {
      for (const Word& word : responses_.front().late) put(word);
      response_offered_ = true;
    }
    top.m_axi_bvalid = response_offered_;
    if (response_offered_) top.m_axi_bresp = responses_.front().error;
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
      if (--burst.beats == 0) {
        if (dram_) dram_->finish_read();
        reads_.pop_front();
      }
    }
    write_waits_ = top.m_axi_wvalid && !top.m_axi_wready;
    if (top.m_axi_wvalid && top.m_axi_wready) {
      moved = true;
      last_was_read_ = false;
      take_word(top, cycle);
    }
    if (top.m_axi_bvalid && top.m_axi_bready) {
      moved = true;
      response_offered_ = false;
      responses_.pop_front();
    }
    if (top.m_axi_arvalid && top.m_axi_arready) take_read(top, cycle);
    if (top.m_axi_awvalid && top.m_axi_awready) {
      writes_.push_back(burst(top.m_axi_awaddr, top.m_axi_awlen, cycle, ++write_bursts_ == fail_write_));
      writes_.back().late = stalls_.coin();
    }
    return moved;
  }

 private:
  static constexpr size_t kOutstanding = 32;
  static constexpr unsigned kDecodeError = 3;
  struct Word {
    uint32_t address;
    uint64_t strobe;
    uint8_t data[kBusBytes];
  };
  struct Burst {
    uint32_t address;
    uint32_t beats;
    uint64_t due;
    unsigned error;  // the response
    uint32_t begin;
    bool late = false;          // written words are in memory only with the response
    std::vector<uint8_t> seen;  // what is read, if it was seen when the address was taken
  };
  struct Response {
    uint64_t due;
    unsigned error;
    std::vector<Word> late;
  };

  Burst burst(uint32_t address, unsigned length, uint64_t cycle, bool fails) {
    const uint32_t beats = length + 1;
    const bool exists = in_main(address) && memory_.find(address, uint64_t{beats} * kBusBytes) != nullptr;
    return {address, beats, cycle + latency_, !exists ? kDecodeError : fails ? fail_response_ : 0, address};
  }

  void take_read(const Top& top, uint64_t cycle) {
    reads_.push_back(burst(top.m_axi_araddr, top.m_axi_arlen, cycle, ++read_bursts_ == fail_read_));
    Burst& burst = reads_.back();
    const uint64_t bytes = uint64_t{burst.beats} * kBusBytes;
    if (dram_) dram_->read(burst.address - kMainBase, bytes);
    if (!burst.error && stalls_.coin()) {
      const uint8_t* source = memory_.find(burst.address, bytes);
      burst.seen.assign(source, source + bytes);
    }
  }

  bool read_due(uint64_t cycle) const {
    if (reads_.empty()) return false;
    const Burst& burst = reads_.front();
    return dram_ ? dram_->word_there(burst.address - kMainBase, kBusBytes) : burst.due <= cycle;
  }

  void offer_read(Top& top) {
    const Burst& burst = reads_.front();
    if (!burst.error)
      std::memcpy(&top.m_axi_rdata, burst.seen.empty() ? memory_.find(burst.address, kBusBytes)
                                                       : burst.seen.data() + (burst.address - burst.begin), kBusBytes);
    top.m_axi_rresp = burst.error;
    top.m_axi_rlast = burst.beats == 1;
  }

  void take_word(const Top& top, uint64_t cycle) {
    Burst& burst = writes_.front();
    budget_ -= kBusBytes;
    ++words_written_;
    bytes_written_ += static_cast<unsigned>(__builtin_popcount(top.m_axi_wstrb));
    if (dram_) dram_->take_word(kBusBytes);
    if (!burst.error) {
      Word word{burst.address, static_cast<uint64_t>(top.m_axi_wstrb), {}};
      std::memcpy(word.data, &top.m_axi_wdata, kBusBytes);
      if (burst.late) late_.push_back(word);
      else put(word);
    }
    burst.address += kBusBytes;
    if (--burst.beats == 0) {
      if (dram_) dram_->write(burst.begin - kMainBase, burst.address - burst.begin);
      responses_.push_back({cycle + latency_, burst.error, std::move(late_)});
      late_.clear();
      writes_.pop_front();
    }
  }

  void put(const Word& word) {
    uint8_t* target = memory_.find(word.address, kBusBytes);
    for (unsigned i = 0; i < kBusBytes; ++i)
      if (word.strobe >> i & 1) target[i] = word.data[i];
  }

  Memory& memory_;
  uint64_t latency_, rate_, budget_ = 0;
  std::unique_ptr<DramController> dram_;
  std::deque<Burst> reads_, writes_;
  std::deque<Response> responses_;
  std::vector<Word> late_;  // of the burst whose words come
  bool read_offered_ = false, response_offered_ = false, write_waits_ = false, last_was_read_ = false;
  uint64_t words_read_ = 0, words_written_ = 0, bytes_written_ = 0, read_bursts_ = 0, write_bursts_ = 0;
  uint64_t fail_read_, fail_write_;
  unsigned fail_response_;
  Stalls stalls_;
};
