// What Verilator's FST writer asks of zlib, without compressing: it then stores its blocks as they are.
//
// sim/fst_file.py compresses the file as a whole. So nothing but a C++ compiler is needed.
#pragma once

#include <cstring>

using Bytef = unsigned char;
using uLong = unsigned long;
using uLongf = unsigned long;

constexpr int Z_OK = 0;

inline uLong compressBound(uLong bytes) { return bytes; }

inline int compress2(Bytef* target, uLongf*, const Bytef* source, uLong bytes, int) {
  std::memcpy(target, source, bytes);
  return Z_OK;
}
