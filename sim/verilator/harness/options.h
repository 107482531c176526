// The command line of the simulator; sim/rtl_engine.py is the one who writes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dram.h"

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

struct Scope {
  int levels;
  std::string path;
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
  std::optional<Cycles> wave_layers;           // --wave-layers FIRST END: the same by status records before it; FST
  std::vector<Scope> wave_scopes;              // --wave-scope LEVELS PATH: of which modules, else of all; FST
  std::string command_kinds;                   // --command-kinds LETTERS: see working.h
  std::string notes;                           // --notes PATH: when each command was at what (commands.h)
  std::vector<Image> images;                   // --image ADDRESS PATH
  std::vector<Dump> dumps;                     // --dump ADDRESS BYTES PATH
  std::vector<Window> windows;                 // --window BASE LIMIT READABLE WRITABLE
  uint64_t main_bytes = 64u << 20;             // --main-bytes N
  uint64_t latency_cycles = 20;                // --latency-cycles N
  uint64_t bytes_per_cycle = 8;                // --bytes-per-cycle N
  std::optional<DramNumbers> dram;             // --dram N..., the numbers of isa/dram/dram.py: of bursts, not of the core
  uint64_t stall_percent = 0;                  // --stalls PERCENT SEED: of cycles, for each channel of the bus
  uint64_t stall_seed = 0;
  bool zero_wait = false;                      // --zero-wait: main memory is as fast as RAM to the core
  uint64_t fail_read = 0;                      // --fail-read N: an error for the Nth read burst, from 1 on
  uint64_t fail_write = 0;                     // --fail-write N: for the Nth write burst
  unsigned fail_response = 2;                  // --fail-response N: which error, 2 (SLVERR) or 3 (DECERR)
  uint64_t reset_at = UINT64_MAX;              // --reset-at N: the system is reset before this cycle; memory stays
  uint64_t stop_at = UINT64_MAX;               // --stop-at N: stop_request in this cycle
  uint64_t upset_at = UINT64_MAX;              // --upset CYCLE QUEUE BIT: a bit of a queue turns over, of a build for it
  uint64_t upset_queue = 0;
  uint64_t upset_bit = 0;
  std::string coverage;                        // --coverage PATH, of a build that counts it
  uint64_t event_cycles = 0;                   // --event-cycles N: mean time between random interrupts and halts
  uint64_t event_seed = 0;                     // --event-seed N
  uint64_t random_state = 0;                   // --random-state SEED: registers and memories begin with noise; 0: do not
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
