// Serves the bursts of standard input ("write address bytes wait") by dram.h, each decided as soon as it can be or
// `wait` later; prints when its data begin and end. The numbers of the DRAM are the arguments.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "dram.h"

int main(int argc, char** argv) {
  uint64_t values[kDramNumbers];
  if (argc != int(kDramNumbers) + 1) return 1;
  for (unsigned i = 0; i < kDramNumbers; ++i) values[i] = std::strtoull(argv[i + 1], nullptr, 10);
  DramNumbers numbers;
  std::memcpy(&numbers, values, sizeof numbers);
  Dram dram(numbers);
  unsigned write;
  unsigned long long address, bytes, wait, now = 0;
  while (std::scanf("%u %llu %llu %llu", &write, &address, &bytes, &wait) == 4) {
    now = std::max<unsigned long long>(now, dram.free_at()) + wait;
    const Dram::Data data = dram.serve(write, address, bytes, now);
    std::printf("%llu %llu\n", (unsigned long long)data.start, (unsigned long long)data.end);
  }
}
