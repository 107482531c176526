// What Verilator's FST writer asks of LZ4, without compressing (zlib.h beside this file says why).
//
// One block is always LZ4: it becomes a single sequence of literals, as LZ4's block format has them.
#pragma once

#include <cstring>

inline int LZ4_compressBound(int bytes) { return bytes + bytes / 255 + 16; }

inline int LZ4_compress_default(const char* source, char* target, int bytes, int) {
  constexpr int kInToken = 15, kInByte = 255;
  char* next = target;
  *next++ = static_cast<char>((bytes < kInToken ? bytes : kInToken) << 4);
  if (bytes >= kInToken) {
    int rest = bytes - kInToken;
    for (; rest >= kInByte; rest -= kInByte) *next++ = static_cast<char>(kInByte);
    *next++ = static_cast<char>(rest);
  }
  std::memcpy(next, source, static_cast<std::size_t>(bytes));
  return static_cast<int>(next - target) + bytes;
}
