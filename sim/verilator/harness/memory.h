// Memory map of the simulated system: zero-wait RAM, main memory, devices.
#pragma once

#include <cstdint>
#include <string>

constexpr uint32_t kRamBase = 0x00000000;
constexpr uint32_t kRamBytes = 1u << 20;
constexpr uint32_t kMainBase = 0x80000000;

constexpr uint32_t kPutchar = 0x10000000;    // a character for standard output
constexpr uint32_t kExit = 0x10000004;       // ends the run with this exit code
constexpr uint32_t kTrapPc = 0x10000008;     // mepc; the run ends with the store after it
constexpr uint32_t kTrapCause = 0x1000000c;  // mcause
constexpr uint32_t kMark = 0x10000010;       // a number noted with the cycle of the store

constexpr uint32_t kTimerCompare = 0x10000020;   // of 64 bits: the timer's interrupt is high from this cycle on
constexpr uint32_t kExternalClear = 0x10000028;  // a store lowers the external interrupt
constexpr uint32_t kDebugClear = 0x1000002c;     // a store lowers the debug request
constexpr uint32_t kTime = 0x10000030;           // a load gets the cycle, its lower 32 bits
constexpr uint32_t kRandom = 0x10000034;         // a load gets a random number

constexpr uint32_t kDebugRom = 0x1a110800;   // where a debug request halts the core (rtl/soc/host_core.sv)

constexpr bool in_main(uint32_t address) { return address >= kMainBase; }
constexpr bool in_devices(uint32_t address) { return address >= kPutchar && address <= kRandom; }

// RAM and main memory. Main memory is sparse: pages exist once they are written.
class Memory {
 public:
  explicit Memory(uint64_t main_bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // The `bytes` bytes at `address`, or nullptr if not all of them exist.
  uint8_t* find(uint32_t address, uint64_t bytes) {
    if (address >= kMainBase) {
      const uint64_t offset = address - kMainBase;
      return offset + bytes <= main_bytes_ ? main_ + offset : nullptr;
    }
    return uint64_t{address} + bytes <= kRamBytes ? ram_ + address : nullptr;
  }

  // Loads the PT_LOAD segments of a 32-bit little-endian RISC-V ELF. Throws std::runtime_error.
  void load_elf(const std::string& path);
  // Copies a whole file to `address`. Throws std::runtime_error.
  void load_image(uint32_t address, const std::string& path);
  // Writes memory to a file. Throws std::runtime_error.
  void dump(uint32_t address, uint64_t bytes, const std::string& path);

 private:
  uint8_t* ram_;
  uint8_t* main_;
  uint64_t main_bytes_;
};
