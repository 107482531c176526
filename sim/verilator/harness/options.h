// The command line of the simulator; sim/rtl_engine.py is the one who writes it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

struct Image {
  uint32_t address;
  std::string path;
};

struct Dump {
  uint32_t address;
  uint64_t bytes;
  std::string path;
};

struct Cycles {
  uint64_t first;
  uint64_t end;
};

struct Window {
  uint32_t base;
  uint32_t limit;
  bool readable;
  bool writable;
};

struct Options {
  std::string elf;                             // --elf PATH
  std::string result;                          // --result PATH
  std::string wave;                            // --wave PATH, of a tracing build
  std::vector<Cycles> wave_cycles;             // --wave-cycles FIRST END: what the waveform shows, else everything
  std::vector<Image> images;                   // --image ADDRESS PATH
  std::vector<Dump> dumps;                     // --dump ADDRESS BYTES PATH
  std::vector<Window> windows;                 // --window BASE LIMIT READABLE WRITABLE
  uint64_t main_bytes = 64u << 20;             // --main-bytes N
  uint64_t latency_cycles = 20;                // --latency-cycles N
  uint64_t bytes_per_cycle = 8;                // --bytes-per-cycle N
  bool zero_wait = false;                      // --zero-wait: main memory is as fast as RAM to the core
  uint64_t fail_read = 0;                      // --fail-read N: SLVERR for the Nth read burst, from 1 on
  uint64_t fail_write = 0;                     // --fail-write N: for the Nth write burst
  uint64_t stop_at = UINT64_MAX;               // --stop-at N: stop_request in this cycle
  uint64_t max_cycles = UINT64_MAX;            // --max-cycles N
  uint64_t no_progress_cycles = 1'000'000;     // --no-progress-cycles N

  // Whether the waveform shows a cycle.
  bool shows(uint64_t cycle) const {
    for (const Cycles& each : wave_cycles)
      if (cycle >= each.first && cycle < each.end) return true;
    return wave_cycles.empty();
  }
};

// Throws std::runtime_error with a sentence if the arguments have another form.
Options parse_options(int argc, char** argv);
