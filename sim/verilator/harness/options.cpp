// Parsing the command line: every option takes a fixed number of values, numbers in any C notation.
#include "options.h"

#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace {

class Arguments {
 public:
  Arguments(int argc, char** argv) : words_(argv + 1, argv + argc) {}

  bool empty() const { return next_ == words_.size(); }

  std::string text() {
    if (empty()) throw std::runtime_error("Option " + words_.back() + " lacks a value");
    return words_[next_++];
  }

  uint64_t number() {
    const std::string word = text();
    char* end = nullptr;
    const uint64_t value = std::strtoull(word.c_str(), &end, 0);
    if (word.empty() || *end != '\0') throw std::runtime_error("Option value must be a number, not '" + word + "'");
    return value;
  }

  DramNumbers dram() {
    uint64_t values[kDramNumbers];
    for (uint64_t& value : values) value = number();
    DramNumbers numbers;
    std::memcpy(&numbers, values, sizeof numbers);
    return numbers;
  }

  uint32_t address() { return static_cast<uint32_t>(number()); }

 private:
  std::vector<std::string> words_;
  size_t next_ = 0;
};

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  Arguments arguments(argc, argv);
  while (!arguments.empty()) {
    const std::string name = arguments.text();
    // Braced initialisers evaluate from left to right.
    if (name == "--elf") options.elf = arguments.text();
    else if (name == "--result") options.result = arguments.text();
    else if (name == "--notes") options.notes = arguments.text();
    else if (name == "--wave") options.wave = arguments.text();
    else if (name == "--coverage") options.coverage = arguments.text();
    else if (name == "--upset") {
      options.upset_at = arguments.number();
      options.upset_queue = arguments.number();
      options.upset_bit = arguments.number();
    }
    else if (name == "--wave-cycles") options.wave_cycles.push_back(Cycles{arguments.number(), arguments.number()});
    else if (name == "--wave-layers") options.wave_layers = Cycles{arguments.number(), arguments.number()};
    else if (name == "--wave-scope")
      options.wave_scopes.push_back(Scope{static_cast<int>(arguments.number()), arguments.text()});
    else if (name == "--command-kinds") options.command_kinds = arguments.text();
    else if (name == "--image") options.images.push_back(Image{arguments.address(), arguments.text()});
    else if (name == "--dump")
      options.dumps.push_back(Dump{arguments.address(), arguments.number(), arguments.text()});
    else if (name == "--window")
      options.windows.push_back(
          Window{arguments.address(), arguments.address(), arguments.number() != 0, arguments.number() != 0});
    else if (name == "--main-bytes") options.main_bytes = arguments.number();
    else if (name == "--latency-cycles") options.latency_cycles = arguments.number();
    else if (name == "--bytes-per-cycle") options.bytes_per_cycle = arguments.number();
    else if (name == "--dram") options.dram = arguments.dram();
    else if (name == "--stalls") {
      options.stall_percent = arguments.number();
      options.stall_seed = arguments.number();
    }
    else if (name == "--zero-wait") options.zero_wait = true;
    else if (name == "--fail-read") options.fail_read = arguments.number();
    else if (name == "--fail-write") options.fail_write = arguments.number();
    else if (name == "--fail-response") options.fail_response = static_cast<unsigned>(arguments.number());
    else if (name == "--reset-at") options.reset_at = arguments.number();
    else if (name == "--stop-at") options.stop_at = arguments.number();
    else if (name == "--event-cycles") options.event_cycles = arguments.number();
    else if (name == "--event-seed") options.event_seed = arguments.number();
    else if (name == "--random-state") options.random_state = arguments.number();
    else if (name == "--max-cycles") options.max_cycles = arguments.number();
    else if (name == "--no-progress-cycles") options.no_progress_cycles = arguments.number();
    else throw std::runtime_error("Option is not known: " + name);
  }
  if (options.elf.empty() || options.result.empty()) throw std::runtime_error("Options --elf and --result must be given");
  if (options.windows.size() > 4) throw std::runtime_error("There must be at most 4 windows");
  return options;
}
