// A DRAM's banks and data pins in time: when the data of a burst move, in picoseconds.
//
// sim/timing/dram_banks.py is the same arithmetic for the cycle model; tests/sim/timing/test_dram_banks.py holds the
// two together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

// The numbers of isa/dram/dram.py (DramNumbers), in its order: times in picoseconds.
struct DramNumbers {
  uint64_t period, controller, write_buffer_bytes, banks, row_bytes, access_bytes, access, cl, cwl, rcd, rp, ras, rtp,
      wr, wtr, rtw, rrd, faw, refi, rfc;
};
constexpr unsigned kDramNumbers = sizeof(DramNumbers) / sizeof(uint64_t);

// Rows stay open until another row of the bank is needed or all banks are refreshed. Neighbouring rows of memory lie in
// neighbouring banks. A burst lies in one row.
class Dram {
 public:
  struct Data {
    uint64_t start, end;  // on the data pins
  };

  explicit Dram(const DramNumbers& numbers) : t_(numbers), banks_(numbers.banks), refresh_(numbers.refi) {}

  // From when on the controller may decide what comes next: so early that another bank's row can be opened meanwhile.
  uint64_t free_at() const { return free_at_; }

  // Moves the burst of `bytes` bytes at `address`, decided upon at `now`.
  Data serve(bool write, uint64_t address, uint64_t bytes, uint64_t now) {
    refresh(now);
    const uint64_t index = address / t_.row_bytes;
    Bank& bank = banks_[index % t_.banks];
    open(bank, index / t_.banks, now);
    const uint64_t latency = write ? t_.cwl : t_.cl;
    const uint64_t accesses = (address % t_.access_bytes + bytes + t_.access_bytes - 1) / t_.access_bytes;
    uint64_t start = std::max(std::max(now, bank.command_after) + latency, pins_free_);
    if (write && read_last_) start = std::max(start, pins_free_ + t_.rtw);
    if (!write && write_last_) start = std::max(start, pins_free_ + t_.wtr + t_.cl);
    const uint64_t end = start + accesses * t_.access;
    const uint64_t closable = write ? end + t_.wr : end - t_.access - t_.cl + t_.rtp;
    bank.close_after = std::max(bank.close_after, closable);
    pins_free_ = end;
    read_last_ = !write;
    write_last_ = write;
    const uint64_t ahead = t_.rp + t_.rcd + t_.cl;
    free_at_ = std::max(now, end > ahead ? end - ahead : 0);
    return {start, end};
  }

 private:
  static constexpr uint64_t kClosed = UINT64_MAX;
  struct Bank {
    uint64_t row = kClosed;
    uint64_t open_after = 0, command_after = 0, close_after = 0;
  };

  void open(Bank& bank, uint64_t row, uint64_t now) {
    if (bank.row == row) return;
    uint64_t begin = bank.row == kClosed ? std::max(now, bank.open_after) : std::max(now, bank.close_after) + t_.rp;
    if (activations_ > 0) begin = std::max(begin, activated_[(activations_ - 1) % 4] + t_.rrd);
    if (activations_ > 3) begin = std::max(begin, activated_[activations_ % 4] + t_.faw);
    activated_[activations_++ % 4] = begin;
    bank.row = row;
    bank.command_after = begin + t_.rcd;
    bank.close_after = begin + t_.ras;
  }

  // Refreshes all banks if that is due; refreshes that were due before had time enough.
  void refresh(uint64_t now) {
    if (now < refresh_) return;
    const uint64_t due = refresh_ + (now - refresh_) / t_.refi * t_.refi;
    uint64_t begin = std::max(due, pins_free_);
    bool open = false;
    for (const Bank& bank : banks_) {
      if (bank.row == kClosed) continue;
      open = true;
      begin = std::max(begin, bank.close_after);
    }
    const uint64_t end = begin + (open ? t_.rp : 0) + t_.rfc;
    for (Bank& bank : banks_) bank = Bank{kClosed, end, 0, 0};
    refresh_ = due + t_.refi;
  }

  DramNumbers t_;
  std::vector<Bank> banks_;
  uint64_t pins_free_ = 0, free_at_ = 0, refresh_, activations_ = 0, activated_[4] = {};
  bool read_last_ = false, write_last_ = false;
};
