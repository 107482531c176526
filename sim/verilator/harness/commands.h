// When each command is offered, sent, taken, begun and ended, from the coprocessor's events of every cycle.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>

// rtl/port/command_watch.py lays the events out; the lowest bit comes first.
struct CommandEvents {
  explicit CommandEvents(uint64_t word) : word_(word) {}
  bool offered() const { return bit(0); }
  bool sent() const { return bit(1); }
  unsigned code() const { return word_ >> 2 & 63; }
  bool taken(unsigned unit) const { return bit(8 + unit); }
  bool array_begins() const { return bit(12); }
  bool array_ends() const { return bit(13); }
  bool segment_queued() const { return bit(14); }
  bool segment_ends_command() const { return bit(15); }
  bool segment_written() const { return bit(16); }
  bool step_issued() const { return bit(17); }
  bool step_ends_command() const { return bit(18); }
  bool step_written() const { return bit(19); }
  bool run_queued() const { return bit(20); }
  bool run_ends_command() const { return bit(21); }
  bool run_to_memory() const { return bit(22); }
  bool record_begins() const { return bit(23); }
  bool word_sent() const { return bit(24); }
  bool run_copied() const { return bit(25); }
  unsigned run_words() const { return word_ >> 26 & 0xffff; }

 private:
  bool bit(unsigned place) const { return word_ >> place & 1; }
  uint64_t word_;
};

// Pieces of a unit's work, which end in the order in which they began.
class Pieces {
 public:
  void begin(uint64_t count, bool ends_command) {
    begun_ += count;
    if (ends_command) last_.push_back(begun_);
  }

  // Ends the oldest piece; returns whether a command ends with it.
  bool end() {
    ++ended_;
    if (last_.empty() || last_.front() != ended_) return false;
    last_.pop_front();
    return true;
  }

 private:
  uint64_t begun_ = 0, ended_ = 0;
  std::deque<uint64_t> last_;  // of commands: how many pieces have begun with each one's last
};

// Whose oldest command under way ends in a cycle; the store has those to memory, and those it copies.
struct CommandEnds {
  bool load, array, post, store, copy;
};

class CommandsUnderWay {
 public:
  CommandEnds sample(CommandEvents events) {
    if (events.segment_queued()) segments_.begin(1, events.segment_ends_command());
    if (events.step_issued()) steps_.begin(1, events.step_ends_command());
    if (events.run_queued()) {
      if (events.run_to_memory()) words_.begin(events.run_words(), events.run_ends_command());
      else copies_.begin(1, events.run_ends_command());
    }
    if (events.record_begins()) words_.begin(record_words_, true);
    return {events.segment_written() && segments_.end(), events.array_ends(), events.step_written() && steps_.end(),
            events.word_sent() && words_.end(), events.run_copied() && copies_.end()};
  }

  explicit CommandsUnderWay(unsigned bus_bytes) : record_words_(kRecordBytes / bus_bytes) {}

 private:
  static constexpr unsigned kRecordBytes = 128;  // isa.counters.RECORD_WORDS
  unsigned record_words_;
  Pieces segments_, steps_, words_, copies_;
};

// What is noted; sim/measured_times.py reads it.
enum class Note : uint8_t {
  kOffered, kSent,  // with the command's code
  kTaken,           // with the unit
  kArrayBegins, kLoadEnds, kArrayEnds, kPostEnds, kStoreEnds, kCopyEnds,
  kCallEnds,                 // an operator that the core has computed itself
  kBytesRead, kBytesWritten  // since the last such note
};

constexpr unsigned kUnits = 4;
constexpr uint64_t kTrafficCycles = 16;  // bytes on the bus are added up over so many

// Notes of a run, each a word: the cycle, from bit 24 on, the kind, and a value in the lower 16 bits.
class CommandNotes {
 public:
  explicit CommandNotes(const std::string& path) : file_(std::fopen(path.c_str(), "wb"), std::fclose) {
    if (!file_) throw std::runtime_error("Notes of commands could not be written: " + path);
  }

  void sample(CommandEvents events, CommandEnds ends, uint64_t cycle) {
    cycle_ = cycle;
    if (events.offered() && !offered_) note(Note::kOffered, events.code());
    if (events.sent()) note(Note::kSent, events.code());
    offered_ = events.offered() && !events.sent();
    for (unsigned unit = 0; unit < kUnits; ++unit)
      if (events.taken(unit)) note(Note::kTaken, unit);
    if (ends.array) note(Note::kArrayEnds);
    if (events.array_begins()) note(Note::kArrayBegins);
    if (ends.load) note(Note::kLoadEnds);
    if (ends.post) note(Note::kPostEnds);
    if (ends.store) note(Note::kStoreEnds);
    if (ends.copy) note(Note::kCopyEnds);
  }

  // So many bytes have crossed the bus by the end of this cycle.
  void sample_bus(uint64_t read, uint64_t written, uint64_t cycle, bool last = false) {
    if ((cycle + 1) % kTrafficCycles && !last) return;
    cycle_ = cycle;
    if (read != read_) note(Note::kBytesRead, read - read_);
    if (written != written_) note(Note::kBytesWritten, written - written_);
    read_ = read;
    written_ = written;
  }

  // The core has come to `instruction` at `pc`. Behind each operator that it computes itself stands a fence.
  void sample_core(uint32_t pc, const uint8_t* instruction, uint64_t cycle) {
    if (pc == pc_) return;
    pc_ = pc;
    uint32_t word = 0;
    if (instruction != nullptr) std::memcpy(&word, instruction, sizeof word);
    cycle_ = cycle;
    if (word == kFence) note(Note::kCallEnds);
  }

 private:
  static constexpr uint32_t kFence = 0x0ff0000f;  // fence iorw, iorw

  void note(Note kind, uint64_t value = 0) {
    const uint64_t word = cycle_ << 24 | static_cast<uint64_t>(kind) << 16 | value;
    std::fwrite(&word, sizeof word, 1, file_.get());
  }

  std::unique_ptr<FILE, int (*)(FILE*)> file_;
  uint64_t cycle_ = 0, read_ = 0, written_ = 0;
  uint32_t pc_ = ~0u;
  bool offered_ = false;
};
