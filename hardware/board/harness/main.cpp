// A host at the serial line of a board in simulation: sends frames, one after each answer, and writes down the answers.
//
//   simulator CYCLES_PER_BIT SILENCE_CYCLES BUTTON_PRESSED FRAMES
//
// Cycles are the oscillator's. BUTTON_PRESSED is the level of the button's pin then. FRAMES is a file: for each frame its
// length (32 bits, low byte first) and its bytes; a frame of no bytes is the reset button. The board's first line is waited
// for before the first frame. Lines that come go to standard output, each behind the cycle in which it ended and the levels
// of the output pins; "progress CYCLE" goes to standard error. It ends when there was an answer to every frame, or with
// status 3 if nothing came for SILENCE_CYCLES after a frame's last byte.
#include <verilated.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "Vtop.h"

namespace {

constexpr uint64_t kCyclesBetweenReports = 1 << 16;
constexpr uint64_t kCyclesPressed = 1000;

using Bytes = std::vector<uint8_t>;

// The host's transmitter: eight data bits, no parity, one stop bit.
class Sender {
 public:
  explicit Sender(uint64_t cycles_per_bit) : cycles_per_bit_(cycles_per_bit) {}

  void send(Bytes bytes) {
    bytes_ = std::move(bytes);
    next_ = bit_ = wait_ = 0;
  }
  bool done() const { return next_ == bytes_.size(); }

  // The line's level in this cycle.
  bool level() {
    if (done()) return true;
    const bool level = bit_ == 0 ? false : bit_ == 9 ? true : bytes_[next_] >> (bit_ - 1) & 1;
    if (++wait_ == cycles_per_bit_) {
      wait_ = 0;
      if (++bit_ == 10) {
        bit_ = 0;
        ++next_;
      }
    }
    return level;
  }

 private:
  uint64_t cycles_per_bit_;
  Bytes bytes_;
  size_t next_ = 0;
  uint64_t bit_ = 0, wait_ = 0;
};

// The host's receiver: looks at each bit in its middle.
class Receiver {
 public:
  explicit Receiver(uint64_t cycles_per_bit) : cycles_per_bit_(cycles_per_bit) {}

  // The byte that is complete with this level, or -1.
  int take(bool level) {
    if (bit_ < 0) {
      if (!level) {
        bit_ = 0;
        wait_ = cycles_per_bit_ / 2;
      }
      return -1;
    }
    if (wait_ != 0) {
      --wait_;
      return -1;
    }
    wait_ = cycles_per_bit_ - 1;
    if (bit_ == 9) {
      bit_ = -1;
      if (!level) throw std::runtime_error("the board sent a byte without a stop bit");
      return byte_;
    }
    if (bit_ > 0) byte_ = static_cast<uint8_t>(byte_ >> 1 | level << 7);
    ++bit_;
    return -1;
  }

 private:
  uint64_t cycles_per_bit_;
  int bit_ = -1;
  uint64_t wait_ = 0;
  uint8_t byte_ = 0;
};

std::vector<Bytes> read_frames(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(std::string("frames could not be read: ") + path);
  const Bytes all{std::istreambuf_iterator<char>(file), {}};
  std::vector<Bytes> frames;
  for (size_t at = 0; at < all.size();) {
    if (at + 4 > all.size()) throw std::runtime_error("frames are cut short");
    const size_t length = all[at] | all[at + 1] << 8 | all[at + 2] << 16 | size_t{all[at + 3]} << 24;
    at += 4;
    if (at + length > all.size()) throw std::runtime_error("frames are cut short");
    frames.emplace_back(all.begin() + at, all.begin() + at + length);
    at += length;
  }
  return frames;
}

int run(uint64_t cycles_per_bit, uint64_t silence_cycles, bool button_pressed, const std::vector<Bytes>& frames) {
  VerilatedContext context;
  Vtop top(&context);
  Sender sender(cycles_per_bit);
  Receiver receiver(cycles_per_bit);
  std::string line;
  size_t answers = 0;  // the board's first line is one
  uint64_t heard = 0, pressed_until = 0;
  for (uint64_t cycle = 0; answers <= frames.size(); ++cycle) {
    top.uart_rx = sender.level();
    top.button = (cycle < pressed_until) == button_pressed;
    top.oscillator = 0;
    top.eval();
    top.oscillator = 1;
    top.eval();
    if (cycle % kCyclesBetweenReports == 0) std::fprintf(stderr, "progress %" PRIu64 "\n", cycle);
    if (!sender.done()) heard = cycle;
    const int byte = receiver.take(top.uart_tx);
    if (byte >= 0) heard = cycle;
    if (byte == '\n') {
      std::printf("%" PRIu64 " %u %s\n", cycle, unsigned{top.outputs}, line.c_str());
      line.clear();
      if (answers < frames.size()) {
        if (frames[answers].empty()) pressed_until = cycle + kCyclesPressed;
        else sender.send(frames[answers]);
      }
      ++answers;
    } else if (byte >= 0) {
      line += static_cast<char>(byte);
    }
    if (cycle - heard > silence_cycles) {
      std::fprintf(stderr, "the board was silent for %" PRIu64 " cycles, its outputs at %#x, after '%s'\n", silence_cycles,
                   unsigned{top.outputs}, line.c_str());
      return 3;
    }
  }
  top.final();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "simulator CYCLES_PER_BIT SILENCE_CYCLES BUTTON_PRESSED FRAMES\n");
    return 2;
  }
  try {
    return run(std::strtoull(argv[1], nullptr, 10), std::strtoull(argv[2], nullptr, 10), argv[3][0] == '1',
               read_frames(argv[4]));
  } catch (const std::runtime_error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
