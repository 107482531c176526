// Memory from files and back: ELF segments, images, dumps.
#include "memory.h"

#include <elf.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

namespace {

using File = std::unique_ptr<FILE, int (*)(FILE*)>;

File open_file(const std::string& path, const char* mode) {
  File file(std::fopen(path.c_str(), mode), std::fclose);
  if (!file) throw std::runtime_error("File could not be opened: " + path);
  return file;
}

uint64_t size_of(FILE* file) {
  std::fseek(file, 0, SEEK_END);
  const long size = std::ftell(file);
  std::rewind(file);
  return static_cast<uint64_t>(size);
}

std::string hexadecimal(uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", value);
  return text;
}

uint8_t* allocate(uint64_t bytes) {
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) throw std::runtime_error("Memory of " + std::to_string(bytes) + " bytes was refused");
  return static_cast<uint8_t*>(pages);
}

}  // namespace

Memory::Memory(uint64_t main_bytes)
    : ram_(allocate(kRamBytes)), main_(allocate(main_bytes)), main_bytes_(main_bytes) {}

Memory::~Memory() {
  munmap(ram_, kRamBytes);
  munmap(main_, main_bytes_);
}

void Memory::load_elf(const std::string& path) {
  const File file = open_file(path, "rb");
  std::vector<uint8_t> text(size_of(file.get()));
  if (std::fread(text.data(), 1, text.size(), file.get()) != text.size())
    throw std::runtime_error("ELF file could not be read: " + path);

  Elf32_Ehdr header;
  if (text.size() < sizeof header) throw std::runtime_error("ELF file is too short: " + path);
  std::memcpy(&header, text.data(), sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS32 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_machine != EM_RISCV)
    throw std::runtime_error("File must be a 32-bit RISC-V ELF: " + path);

  for (int i = 0; i < header.e_phnum; ++i) {
    Elf32_Phdr segment;
    const uint64_t place = uint64_t{header.e_phoff} + uint64_t(i) * header.e_phentsize;
    if (place + sizeof segment > text.size()) throw std::runtime_error("ELF file is cut off: " + path);
    std::memcpy(&segment, text.data() + place, sizeof segment);
    if (segment.p_type != PT_LOAD || segment.p_memsz == 0) continue;
    uint8_t* target = find(segment.p_paddr, segment.p_memsz);
    if (target == nullptr || segment.p_filesz > segment.p_memsz ||
        uint64_t{segment.p_offset} + segment.p_filesz > text.size())
      throw std::runtime_error("ELF segment at " + hexadecimal(segment.p_paddr) + " does not fit the memory: " + path);
    std::memcpy(target, text.data() + segment.p_offset, segment.p_filesz);
  }
}

void Memory::load_image(uint32_t address, const std::string& path) {
  const File file = open_file(path, "rb");
  const uint64_t size = size_of(file.get());
  uint8_t* target = find(address, size);
  if (target == nullptr)
    throw std::runtime_error("Image of " + std::to_string(size) + " bytes does not fit at " + hexadecimal(address));
  if (std::fread(target, 1, size, file.get()) != size) throw std::runtime_error("Image could not be read: " + path);
}

void Memory::dump(uint32_t address, uint64_t bytes, const std::string& path) {
  const uint8_t* source = find(address, bytes);
  if (source == nullptr)
    throw std::runtime_error("Dump of " + std::to_string(bytes) + " bytes at " + hexadecimal(address) +
                             " is outside the memory");
  const File file = open_file(path, "wb");
  if (std::fwrite(source, 1, bytes, file.get()) != bytes)
    throw std::runtime_error("Dump could not be written: " + path);
}
