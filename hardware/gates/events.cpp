// Event simulation of a flat netlist with delays: which net toggles how often, and whether borders are as expected.
//
// usage: events DESIGN STIMULUS RESULT; little-endian 32-bit words, written and read by events.py, which says what
// they are. Times are whole picoseconds. A gate's delay is inertial, as that of a Verilog continuous assignment
// (IEEE 1364-2005, 6.1.3): a change that does not last as long as the delay does not pass.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr int kInputs = 4;       // of a gate
constexpr int kPins = kInputs;   // whose changes are told apart at an output
constexpr int32_t kNone = -1;

struct Gate {
  int32_t output, delay, inputs, nets[kInputs];
  uint32_t table;
};

struct Flop {
  int32_t clock, data, output, delay, inverted;
};

struct Latch {
  int32_t enable, data, output, delay;
};

// What changes when a net does: a gate's input, a flip-flop's clock, a latch.
struct Load {
  enum Kind : uint8_t { kGate, kClock, kLatch } kind;
  uint8_t pin;
  int32_t index;
};

struct Event {
  int32_t driver;   // see Simulation::drive
  uint32_t serial;  // of the schedule that made it; another one means that it was taken back
};

std::vector<int32_t> read_words(const char* path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw std::runtime_error(std::string("cannot read ") + path);
  std::vector<int32_t> words(static_cast<size_t>(file.tellg()) / 4);
  file.seekg(0);
  file.read(reinterpret_cast<char*>(words.data()), static_cast<std::streamsize>(words.size() * 4));
  return words;
}

class Words {
 public:
  explicit Words(std::vector<int32_t> words) : words_(std::move(words)) {}
  int32_t next() { return words_.at(place_++); }

 private:
  std::vector<int32_t> words_;
  size_t place_ = 0;
};

class Simulation {
 public:
  Simulation(Words design, Words stimulus) {
    const int32_t nets = design.next();
    clock_ = design.next();
    period_ = design.next();
    input_delay_ = design.next();
    value_.assign(nets, 0);
    loads_.resize(nets);
    gates_.resize(design.next());
    for (Gate& gate : gates_) {
      gate.output = design.next();
      gate.delay = design.next();
      gate.table = static_cast<uint32_t>(design.next());
      gate.inputs = design.next();
      for (int i = 0; i < kInputs; ++i) gate.nets[i] = design.next();
    }
    flops_.resize(design.next());
    for (Flop& flop : flops_) flop = {design.next(), design.next(), design.next(), design.next(), design.next()};
    latches_.resize(design.next());
    for (Latch& latch : latches_) latch = {design.next(), design.next(), design.next(), design.next()};
    inputs_.resize(design.next());
    for (int32_t& net : inputs_) net = design.next();
    outputs_.resize(design.next());
    for (int32_t& net : outputs_) net = design.next();

    cycles_ = stimulus.next();
    initial_.resize(flops_.size());
    for (int32_t& each : initial_) each = stimulus.next();
    latched_.resize(latches_.size());
    for (int32_t& each : latched_) each = stimulus.next();
    driven_.resize(static_cast<size_t>(cycles_) * inputs_.size());
    for (int32_t& each : driven_) each = stimulus.next();
    expected_.resize(static_cast<size_t>(cycles_) * outputs_.size());
    for (int32_t& each : expected_) each = stimulus.next();
    connect();
  }

  void run() {
    settle();
    compare(0);
    counting_ = true;
    for (int32_t cycle = 1; cycle < cycles_; ++cycle) {
      set_clock(1);
      const int64_t start = now_;
      schedule_inputs(cycle, start + input_delay_);
      advance(start + period_ / 2);
      set_clock(0);
      advance(start + period_);
      compare(cycle);
    }
  }

  void write(const char* path) const {
    std::ofstream file(path, std::ios::binary);
    const auto put = [&file](const std::vector<uint32_t>& words) {
      file.write(reinterpret_cast<const char*>(words.data()), static_cast<std::streamsize>(words.size() * 4));
    };
    put({static_cast<uint32_t>(late_), static_cast<uint32_t>(mismatches_), static_cast<uint32_t>(first_cycle_),
         static_cast<uint32_t>(first_output_)});
    put(toggles_);
    put(rises_);
    put(falls_);
    if (!file) throw std::runtime_error(std::string("cannot write ") + path);
  }

 private:
  // Drivers of nets are numbered: gates, then flip-flops, then latches, then inputs.
  void connect() {
    pending_.assign(gates_.size() + flops_.size() + latches_.size() + inputs_.size(), {});
    for (size_t i = 0; i < gates_.size(); ++i)
      for (int pin = 0; pin < gates_[i].inputs; ++pin)
        loads_[gates_[i].nets[pin]].push_back({Load::kGate, static_cast<uint8_t>(pin), static_cast<int32_t>(i)});
    for (size_t i = 0; i < flops_.size(); ++i)
      loads_[flops_[i].clock].push_back({Load::kClock, 0, static_cast<int32_t>(i)});
    for (size_t i = 0; i < latches_.size(); ++i) {
      loads_[latches_[i].enable].push_back({Load::kLatch, 0, static_cast<int32_t>(i)});
      loads_[latches_[i].data].push_back({Load::kLatch, 1, static_cast<int32_t>(i)});
    }
    int32_t longest = period_;
    for (const Gate& gate : gates_) longest = std::max(longest, gate.delay);
    size_t slots = 1;
    while (slots <= static_cast<size_t>(longest)) slots *= 2;
    wheel_.resize(slots);
    toggles_.assign(value_.size(), 0);
    rises_.assign(gates_.size() * kPins, 0);
    falls_.assign(gates_.size() * kPins, 0);
  }

  // Bring registers and inputs to their first values, and all else to what follows from them.
  void settle() {
    value_[1] = 1;
    for (size_t i = 0; i < flops_.size(); ++i) value_[flops_[i].output] = static_cast<uint8_t>(initial_[i]);
    for (size_t i = 0; i < latches_.size(); ++i) value_[latches_[i].output] = static_cast<uint8_t>(latched_[i]);
    for (size_t i = 0; i < inputs_.size(); ++i) value_[inputs_[i]] = static_cast<uint8_t>(driven_[i]);
    for (size_t i = 0; i < gates_.size(); ++i) evaluate_gate(static_cast<int32_t>(i), 0);
    for (size_t i = 0; i < latches_.size(); ++i) evaluate_latch(static_cast<int32_t>(i));
    const int64_t limit = now_ + 1000LL * period_;
    while (events_ != 0 && now_ < limit) advance(now_ + period_);
    if (events_ != 0) throw std::runtime_error("the netlist does not settle");
  }

  void set_clock(uint8_t value) { change(clock_, value); }

  void schedule_inputs(int32_t cycle, int64_t time) {
    const size_t base = gates_.size() + flops_.size() + latches_.size();
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const auto wanted = static_cast<uint8_t>(driven_[static_cast<size_t>(cycle) * inputs_.size() + i]);
      if (wanted != value_[inputs_[i]]) schedule(static_cast<int32_t>(base + i), wanted, time, 0);
    }
  }

  void compare(int32_t cycle) {
    if (events_ != 0) ++late_;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const int32_t wanted = expected_[static_cast<size_t>(cycle) * outputs_.size() + i];
      if (wanted == kNone || wanted == value_[outputs_[i]]) continue;
      if (mismatches_++ == 0) first_cycle_ = cycle, first_output_ = static_cast<int32_t>(i);
    }
  }

  // Let everything happen that is due before `end`, and make it the present.
  void advance(int64_t end) {
    for (; now_ < end; ++now_) {
      std::vector<Event>& slot = wheel_[static_cast<size_t>(now_) & (wheel_.size() - 1)];
      for (size_t i = 0; i < slot.size(); ++i) {
        const Event event = slot[i];
        Pending& pending = pending_[event.driver];
        if (!pending.waits || pending.serial != event.serial) continue;
        pending.waits = false;
        --events_;
        drive(event.driver, pending.value, pending.pin);
      }
      slot.clear();
    }
  }

  void drive(int32_t driver, uint8_t value, uint8_t pin) {
    size_t index = static_cast<size_t>(driver);
    if (index < gates_.size()) {
      if (counting_) ++(value ? rises_ : falls_)[index * kPins + pin];
      change(gates_[index].output, value);
      return;
    }
    index -= gates_.size();
    if (index < flops_.size()) return change(flops_[index].output, value);
    index -= flops_.size();
    if (index < latches_.size()) return change(latches_[index].output, value);
    change(inputs_[index - latches_.size()], value);
  }

  void change(int32_t net, uint8_t value) {
    if (value_[net] == value) return;
    value_[net] = value;
    if (counting_) ++toggles_[net];
    for (const Load& load : loads_[net]) {
      if (load.kind == Load::kGate) evaluate_gate(load.index, load.pin);
      else if (load.kind == Load::kLatch) evaluate_latch(load.index);
      else if (value == 1) clock_flop(load.index);
    }
  }

  void evaluate_gate(int32_t index, uint8_t pin) {
    const Gate& gate = gates_[index];
    unsigned state = 0;
    for (int i = 0; i < gate.inputs; ++i) state |= static_cast<unsigned>(value_[gate.nets[i]]) << i;
    const auto wanted = static_cast<uint8_t>(gate.table >> state & 1);
    if (gate.delay == 0) {  // the clock's tree is balanced: all of it moves at once
      if (wanted != value_[gate.output]) drive(index, wanted, pin);
      return;
    }
    assign(index, wanted, value_[gate.output], gate.delay, pin);
  }

  void evaluate_latch(int32_t index) {
    const Latch& latch = latches_[index];
    if (value_[latch.enable] == 0) return;
    assign(static_cast<int32_t>(gates_.size() + flops_.size()) + index, value_[latch.data], value_[latch.output],
           latch.delay, 0);
  }

  void clock_flop(int32_t index) {
    const Flop& flop = flops_[index];
    const auto wanted = static_cast<uint8_t>(value_[flop.data] ^ flop.inverted);
    assign(static_cast<int32_t>(gates_.size()) + index, wanted, value_[flop.output], flop.delay, 0);
  }

  void assign(int32_t driver, uint8_t wanted, uint8_t present, int32_t delay, uint8_t pin) {
    Pending& pending = pending_[driver];
    if (pending.waits && pending.value == wanted) return;
    if (pending.waits) {
      pending.waits = false;
      --events_;
    }
    if (wanted != present) schedule(driver, wanted, now_ + delay, pin);
  }

  void schedule(int32_t driver, uint8_t value, int64_t time, uint8_t pin) {
    Pending& pending = pending_[driver];
    pending = {true, value, pin, pending.serial + 1};
    wheel_[static_cast<size_t>(time) & (wheel_.size() - 1)].push_back({driver, pending.serial});
    ++events_;
  }

  struct Pending {
    bool waits = false;
    uint8_t value = 0, pin = 0;
    uint32_t serial = 0;
  };

  int32_t clock_ = 0, period_ = 0, input_delay_ = 0, cycles_ = 0;
  std::vector<Gate> gates_;
  std::vector<Flop> flops_;
  std::vector<Latch> latches_;
  std::vector<int32_t> inputs_, outputs_, initial_, latched_, driven_, expected_;
  std::vector<uint8_t> value_;
  std::vector<std::vector<Load>> loads_;
  std::vector<std::vector<Event>> wheel_;
  std::vector<Pending> pending_;
  std::vector<uint32_t> toggles_, rises_, falls_;
  int64_t now_ = 0, events_ = 0;
  bool counting_ = false;
  uint64_t late_ = 0, mismatches_ = 0;
  int32_t first_cycle_ = kNone, first_output_ = kNone;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 4) throw std::runtime_error("usage: events DESIGN STIMULUS RESULT");
    Simulation simulation(Words(read_words(argv[1])), Words(read_words(argv[2])));
    simulation.run();
    simulation.write(argv[3]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  return 0;
}
