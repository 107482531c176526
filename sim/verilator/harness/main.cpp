// The simulator: one Verilated system, its memories, and a loop until there is a reason to stop.
//
// Built with BUS_BYTES = 0 for a core without a coprocessor, else with the width of the coprocessor's bus.
#include <verilated.h>

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <optional>
#include <stdexcept>

#include "Vtop.h"
#include "activity.h"
#include "axi.h"
#include "commands.h"
#include "memory.h"
#include "obi.h"
#include "options.h"
#include "upset.h"
#include "working.h"
#if VM_COVERAGE
#include <verilated_cov.h>
#endif
#if VM_TRACE_FST
#include <verilated_fst_c.h>
using WaveFile = VerilatedFstC;
#elif VM_TRACE
#include <verilated_vcd_c.h>
using WaveFile = VerilatedVcdC;
#endif

namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned kResetCycles = 8;
constexpr uint64_t kCyclesBetweenClockReadings = 1 << 14;
constexpr double kSecondsBetweenReports = 0.5;
constexpr uint64_t kPicoseconds = 1000;  // of a cycle in FST

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

constexpr int kAssertionsReported = 20;

// Says, before the model is made, what registers without a value begin with, and that some assertions may fail before
// the run ends.
class Context {
 public:
  explicit Context(uint64_t random_state) {
    context_.errorLimit(kAssertionsReported);
    if (random_state == 0) return;
    context_.randReset(2);
    context_.randSeed(static_cast<int>(random_state));
  }
  VerilatedContext* get() { return &context_; }
  VerilatedContext* operator->() { return &context_; }

 private:
  VerilatedContext context_;
};

class Simulation {
 public:
  explicit Simulation(const Options& options)
      : options_(options),
        memory_(options.main_bytes),
        events_(options.event_cycles, options.event_seed),
        context_(options.random_state),
        top_(context_.get()),
        code_(memory_),
        data_(memory_, events_, options.zero_wait ? 1 : options.latency_cycles)
#if BUS_BYTES
        ,
        axi_(memory_, options),
        under_way_(BUS_BYTES),
        working_(options.command_kinds)
#endif
  {
    upset() = Upset{options.upset_at, options.upset_queue, options.upset_bit};
    memory_.load_elf(options.elf);
    for (const Image& image : options.images) memory_.load_image(image.address, image.path);
#if BUS_BYTES
    if (!options.notes.empty()) notes_.emplace(options.notes);
#endif
    open_wave();
    set_windows();
    reset();
  }

  ~Simulation() {
#if VM_TRACE
    if (wave_) wave_->close();
#endif
  }

  void run() {
    start_ = Clock::now();
    double next_report = kSecondsBetweenReports;
    uint64_t next_reading = kCyclesBetweenClockReadings;
    while (stop_ == nullptr) {
      step();
      if (cycle_ < next_reading) continue;
      next_reading += kCyclesBetweenClockReadings;
      if (const double now = seconds_since(start_); now >= next_report) {
        next_report = now + kSecondsBetweenReports;
        report_progress();
      }
    }
    seconds_ = seconds_since(start_);
    top_.final();
    report_progress();
    std::fflush(stdout);
    write_coverage();
    if (const int failed = context_->errorCount()) throw std::runtime_error("Assertions failed: " + std::to_string(failed));
  }

  void write_results() {
    for (const Dump& dump : options_.dumps) memory_.dump(dump.address, dump.bytes, dump.path);
    const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(options_.result.c_str(), "w"), std::fclose);
    if (!file) throw std::runtime_error("Result could not be written: " + options_.result);
    const Devices& devices = data_.devices();
    std::fprintf(file.get(), "{\"stop_reason\": \"%s\", \"cycles\": %" PRIu64 ", \"instructions\": %" PRIu64, stop_, cycle_,
                 instructions_);
    std::fprintf(file.get(), ", \"exit_code\": %u, \"pc\": %u, \"address\": %u", devices.exit_code, top_.pc,
                 data_.failed_address());
    std::fprintf(file.get(), ", \"trap_pc\": %u, \"trap_cause\": %u, \"wall_seconds\": %.6f", devices.trap_pc,
                 devices.trap_cause, seconds_);
#if BUS_BYTES
    if (notes_) notes_->sample_bus(axi_.words_read() * BUS_BYTES, axi_.bytes_written(), cycle_ - 1, true);
    std::fprintf(file.get(), ", \"fault_code\": %u, \"fault_address\": %u, \"status\": %u", unsigned{top_.fault_code},
                 top_.fault_address, unsigned{top_.status});
    std::fprintf(file.get(), ", \"words_read\": %" PRIu64 ", \"words_written\": %" PRIu64, axi_.words_read(),
                 axi_.words_written());
    std::fprintf(file.get(), ", \"timers\": %" PRIu64 ", \"externals\": %" PRIu64 ", \"debugs\": %" PRIu64,
                 events_.timers(), events_.externals(), events_.debugs());
    std::fprintf(file.get(), ", \"sleeps\": [");
    const char* before = "";
    for (const auto& [first, end] : events_.sleeps()) {
      std::fprintf(file.get(), "%s[%" PRIu64 ", %" PRIu64 "]", before, first, end);
      before = ", ";
    }
    std::fprintf(file.get(), "]");
    std::fprintf(file.get(), ", \"read_bursts\": %" PRIu64 ", \"write_bursts\": %" PRIu64, axi_.read_bursts(),
                 axi_.write_bursts());
#endif
    std::fprintf(file.get(), ", \"toggles\": [");
    const char* separator = "";
    for (const auto& row : noted_toggles()) {
      for (size_t i = 0; i < row.size(); ++i)
        std::fprintf(file.get(), "%s%s%" PRIu64, i ? ", " : separator, i ? "" : "[", row[i]);
      std::fprintf(file.get(), "]");
      separator = ", ";
    }
    std::fprintf(file.get(), "], \"marks\": [");
    separator = "";
    for (const auto& [number, cycle] : devices.marks) {
      std::fprintf(file.get(), "%s[%u, %" PRIu64 "]", separator, number, cycle);
      separator = ", ";
    }
    std::fprintf(file.get(), "]}\n");
  }

 private:
  // One cycle: the inputs, the edge that takes them and begins the cycle, a look at the outputs.
  void step() {
    bool progress = false;
    if (cycle_ == options_.reset_at) reset();
    drive();
    fall();
    show(false);
    rise();
#if BUS_BYTES
    watch_commands();
#endif
    show(true);
    code_.sample(top_);
    data_.sample(top_, cycle_);
#if BUS_BYTES
    events_.sample(top_, cycle_);
    progress |= axi_.sample(top_, cycle_);
    progress |= top_.progress;
    if (notes_) notes_->sample_bus(axi_.words_read() * BUS_BYTES, axi_.bytes_written(), cycle_);
#endif
    progress |= top_.retired;
    instructions_ += top_.retired;
    if (progress) last_progress_ = cycle_;
    if (data_.devices().exited) stop_ = "exit";
    else if (data_.devices().trapped) stop_ = "trap";
    else if (data_.failed()) stop_ = "bus error";
    else if (cycle_ - last_progress_ >= options_.no_progress_cycles) stop_ = "no progress";
    else if (cycle_ + 1 >= options_.max_cycles) stop_ = "cycle limit";
    ++cycle_;
  }

  // The core, the coprocessor and the bus; memory keeps its contents.
  void reset() {
    code_.reset();
    data_.reset();
#if BUS_BYTES
    axi_.reset();
    forget_commands();
#endif
    drive();
    top_.rst_n = 0;
    context_->assertOn(false);  // not all of them look at the reset
    for (unsigned i = 0; i < kResetCycles; ++i) {
      fall();
      rise();
    }
    context_->assertOn(true);
    top_.rst_n = 1;
  }

  void drive() {
    upset().cycle = cycle_;
    code_.drive(top_);
    data_.drive(top_, cycle_);
#if BUS_BYTES
    axi_.drive(top_, cycle_);
    events_.drive(top_, cycle_);
    top_.stop_request = cycle_ == options_.stop_at;
#endif
  }

  void fall() {
    top_.clk = 0;
    evaluate();
  }

  void rise() {
    top_.clk = 1;
    evaluate();
  }

  void evaluate() {
    top_.eval();
#if VM_TRACE && !VM_TRACE_FST
    if (wave_ && options_.shows(cycle_)) wave_->dump(context_->time());
#endif
    context_->timeInc(1);
  }

  // In FST a cycle is a nanosecond: it begins as the clock rises, and half-way the clock falls and the next one's inputs
  // come. The reset before is not shown.
  void show(bool risen) {
#if VM_TRACE_FST
    if (!wave_) return;
    if (risen) shows_ = options_.shows(cycle_) && shows_layer();
    if (shows_) wave_->dump(cycle_ * kPicoseconds - (risen ? 0 : kPicoseconds / 2));
#else
    (void)risen;
#endif
  }

  bool shows_layer() const {
#if BUS_BYTES
    const auto& layers = options_.wave_layers;
    return !layers || (working_.layer >= layers->first && working_.layer < layers->end);
#else
    return true;
#endif
  }

#if BUS_BYTES
  // Looks at the events of a cycle as soon as it has begun.
  void watch_commands() {
    if (!notes_ && !VM_TRACE_FST) return;
    if (top_.fault) forget_commands();
    const CommandEvents events(top_.events);
    const CommandEnds ends = under_way_.sample(events);
    if (notes_) {
      notes_->sample(events, ends, cycle_);
      notes_->sample_core(top_.pc, memory_.find(top_.pc, 4), cycle_);
    }
#if VM_TRACE_FST
    working_.sample(events, ends);
    top_.core_command = working_.core;
    top_.load_command = working_.at_work[0];
    top_.array_command = working_.at_work[1];
    top_.post_command = working_.at_work[2];
    top_.store_command = working_.at_work[3];
    top_.layer = static_cast<uint16_t>(working_.layer);
#endif
  }

  void forget_commands() {
    under_way_ = CommandsUnderWay(BUS_BYTES);
    working_.forget();
  }
#endif

  void set_windows() {
#if BUS_BYTES
    for (size_t i = 0; i < 4; ++i) top_.window_base[i] = top_.window_limit[i] = 0;
    top_.window_readable = top_.window_writable = 0;
    for (size_t i = 0; i < options_.windows.size(); ++i) {
      const Window& window = options_.windows[i];
      top_.window_base[i] = window.base;
      top_.window_limit[i] = window.limit;
      top_.window_readable |= window.readable << i;
      top_.window_writable |= window.writable << i;
    }
#endif
  }

  void open_wave() {
    if (options_.wave.empty()) return;
#if VM_TRACE
    context_->traceEverOn(true);
    wave_ = std::make_unique<WaveFile>();
    top_.trace(wave_.get(), 99);
#if VM_TRACE_FST
    wave_->set_time_unit("1ns");
    wave_->set_time_resolution("1ps");
#endif
    for (const Scope& scope : options_.wave_scopes) wave_->dumpvars(scope.levels, scope.path);
    wave_->open(options_.wave.c_str());
#else
    throw std::runtime_error("Option --wave needs a simulator that was built for tracing");
#endif
  }

  void write_coverage() {
    if (options_.coverage.empty()) return;
#if VM_COVERAGE
    context_->coveragep()->write(options_.coverage.c_str());
#else
    throw std::runtime_error("Option --coverage needs a simulator that was built to count it");
#endif
  }

  // "progress CYCLES MARK", the mark being the last number stored to the device, or -1.
  void report_progress() const {
    const auto& marks = data_.devices().marks;
    std::fprintf(stderr, "progress %" PRIu64 " %lld\n", cycle_, marks.empty() ? -1LL : (long long)marks.back().first);
    std::fflush(stderr);
  }

  const Options& options_;
  Memory memory_;
  Events events_;
  Context context_;
  Vtop top_;
  InstructionPort<Vtop> code_;
  DataPort<Vtop> data_;
#if BUS_BYTES
  AxiMemory<Vtop, BUS_BYTES> axi_;
  CommandsUnderWay under_way_;
  WorkingCommands working_;
  std::optional<CommandNotes> notes_;
#endif
#if VM_TRACE
  std::unique_ptr<WaveFile> wave_;
  bool shows_ = false;
#endif
  uint64_t cycle_ = 0, instructions_ = 0, last_progress_ = 0;
  const char* stop_ = nullptr;
  Clock::time_point start_;
  double seconds_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = parse_options(argc, argv);
    Simulation simulation(options);
    simulation.run();
    std::fflush(stdout);
    simulation.write_results();
  } catch (const std::runtime_error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  return 0;
}
