// The command that each unit works on, for waveforms.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <string>

#include "commands.h"

// Of each unit the oldest command that it has begun and not ended, by its code; kIdle if there is none.
class WorkingCommands {
 public:
  static constexpr uint8_t kIdle = 63;

  // `kinds` has a letter for each code: the unit that takes the command (load, array, post, store; copy for those of the
  // store that do not go to memory), a capital if it only sets something, or a dot.
  explicit WorkingCommands(std::string kinds) : kinds_(std::move(kinds)) {}

  void sample(CommandEvents events, CommandEnds ends) {
    layer = records_;
    records_ += events.record_begins();
    core = events.offered() ? events.code() : kIdle;
    for (unsigned unit = 0; unit < kUnits; ++unit)
      if (events.taken(unit)) take(unit);
    for (unsigned unit = 0; unit < kUnits; ++unit)
      at_work[unit] = working_[unit].empty() ? kIdle : working_[unit].front();
    end(0, ends.load, 'l');
    end(1, ends.array, 'a');
    end(2, ends.post, 'p');
    end(3, ends.store, 's');
    end(3, ends.copy, 'c');
    if (events.array_begins() && !pending_.empty()) {
      working_[1].push_back(pending_.front());
      pending_.pop_front();
    }
    if (!events.sent()) return;
    const size_t unit = std::string("lapsc").find(static_cast<char>(kind(events.code()) | 0x20));
    if (unit != std::string::npos) queued_[std::min<size_t>(unit, 3)].push_back(static_cast<uint8_t>(events.code()));
  }

  void forget() { *this = WorkingCommands(kinds_); }

  uint8_t core = kIdle;
  std::array<uint8_t, kUnits> at_work{kIdle, kIdle, kIdle, kIdle};
  unsigned layer = 0;  // whose status record is due next

 private:
  char kind(unsigned code) const { return code < kinds_.size() ? kinds_[code] : '.'; }

  void take(unsigned unit) {
    if (queued_[unit].empty()) return;
    const uint8_t code = queued_[unit].front();
    queued_[unit].pop_front();
    if (kind(code) >= 'a') (unit == 1 ? pending_ : working_[unit]).push_back(code);
  }

  void end(unsigned unit, bool ends, char kind_of_it) {
    if (!ends) return;
    std::deque<uint8_t>& working = working_[unit];
    const auto found =
        std::find_if(working.begin(), working.end(), [&](uint8_t code) { return kind(code) == kind_of_it; });
    if (found != working.end()) working.erase(found);
  }

  std::string kinds_;
  std::array<std::deque<uint8_t>, kUnits> queued_, working_;
  std::deque<uint8_t> pending_;  // the array's, taken and not begun
  unsigned records_ = 0;
};
