// Random requantisations in RTL: one enters in each cycle, and what leaves is held to definitions in C++.
//
//   requantisations KIND COUNT SEED
//
// Kinds: 0 floor((x m + a) / 2^s); 1 the same with half a step more, as Deeploy's RequantShift; 2 a multiplier of 31
// bits, rounded once, halves up; 3 gemmlowp's SaturatingRoundingDoublingHighMul and RoundingDivideByPOT; 4 float32, halves
// to even; 5 halves away from zero, by the multiplier of isa/integers/half_away.py. Two of three sums are next to where a
// level ends.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>

#include "Vtop.h"
#include "verilated.h"

namespace {

using Wide = __int128;
enum Kind { kFloor, kHalfUp, kOnce, kTwice, kEven, kAway };

struct Request {
  int32_t acc = 0, bias = 0;
  uint32_t mantissa = 0, shift = 0, addend = 0;
  int zero = 0, low = -128, high = 127;
  bool integer = true;
  int64_t level = 0;
};

uint64_t state;
uint64_t random64() {  // splitmix64
  uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}
int64_t between(int64_t low, int64_t high) { return low + int64_t(random64() % uint64_t(high - low + 1)); }

Wide floored(Wide value, int shift) { return value >> shift; }

int32_t high_product(int32_t a, int32_t b) {
  if (a == b && a == INT32_MIN) return INT32_MAX;
  const int64_t product = int64_t(a) * b;
  return int32_t((product + (product >= 0 ? 1 << 30 : 1 - (1 << 30))) / (int64_t(1) << 31));
}
int32_t divide_by_power(int32_t x, int exponent) {
  const int32_t mask = int32_t((int64_t(1) << exponent) - 1);
  return (x >> exponent) + ((x & mask) > (mask >> 1) + (x < 0));
}

// A sum whose product with `multiplier` is near the end of a level, or any.
int32_t sum_near(int64_t multiplier, Wide addend, int shift) {
  const int64_t any = between(INT32_MIN, INT32_MAX) >> between(0, 31);
  if (random64() % 3 == 0) return int32_t(any);
  const Wide end = (Wide(2 * between(-140, 140) + 1) << shift) / 2 - addend;
  const Wide near = end / multiplier + between(-2, 3);
  return near < INT32_MIN || near > INT32_MAX ? int32_t(any) : int32_t(near);
}

// A long multiplier and its shift, t, in the request's fields, and what is behind them at random.
void put_long(Request& r, int64_t multiplier, int t, int32_t sum) {
  r.bias = int32_t(between(-(1 << 27), (1 << 27) - 1));
  r.acc = int32_t(uint32_t(sum) - uint32_t(r.bias));
  r.mantissa = uint32_t(multiplier) & 0xffffff;
  r.shift = uint32_t(t) | uint32_t(random64() % 2) << 6;
  r.addend = uint32_t(multiplier >> 24 & 15) | uint32_t(random64() % 4096) << 4;
  r.addend = (r.addend & 0xffff) | uint32_t(multiplier >> 28 & 3) << 16;
}

// x m / 2^shift, halves away from zero, and the constants that give it: halves are moved off their place.
Request drawn_away(Request r) {
  const int bits = random64() % 4 ? int(between(1, 9)) : int(between(1, 31));
  const int64_t odd = between(int64_t(1) << (bits - 1), (int64_t(1) << bits) - 1) | 1;
  const int finer = 31 - bits;
  const int shift = int(random64() % 2 ? between(1, 22) : between(1, 63 - finer));
  int32_t sum = sum_near(odd, 0, shift);
  if (shift > 22 && bits <= 9 && std::llabs(int64_t(sum)) >= int64_t(1) << finer) sum %= 1 << finer;
  const Wide magnitude = ((Wide(std::llabs(int64_t(sum))) * odd << 1 >> shift) + 1) >> 1;
  r.level = int64_t(std::min<Wide>(magnitude, 4096)) * (sum < 0 ? -1 : 1);
  put_long(r, (odd << finer) + (bits <= 9), shift + finer, sum);
  return r;
}

Request drawn(Kind kind, int shift) {
  Request r;
  r.zero = int(random64() % 2 ? between(-128, 127) : 0);
  if (random64() % 4 == 0) { r.low = int(between(-128, 0)); r.high = int(between(1, 127)); }
  if (kind == kFloor || kind == kHalfUp) {
    const int64_t multiplier = between(1, (int64_t(1) << between(1, 18)) - 1);
    const Wide addend = Wide(between(-(1 << 26), 1 << 26)) + (kind == kHalfUp && shift ? Wide(1) << (shift - 1) : 0);
    int64_t bias = int64_t(addend / multiplier) - (addend % multiplier < 0);
    const bool fits = bias >= -(1 << 27) && bias < 1 << 27;
    const Wide used = fits ? addend : addend % multiplier < 0 ? addend % multiplier + multiplier : addend % multiplier;
    if (!fits) bias = 0;
    r.addend = uint32_t(used - Wide(bias) * multiplier);
    const int32_t sum = sum_near(multiplier, used, shift);
    const int64_t total = int64_t(sum) + bias;
    r.acc = total < INT32_MIN || total > INT32_MAX ? int32_t(sum >> 1) : sum;
    if (int64_t(r.acc) + bias < INT32_MIN || int64_t(r.acc) + bias > INT32_MAX) r.acc = 0;
    r.bias = int32_t(bias);
    r.mantissa = uint32_t(multiplier) | uint32_t(random64() % 64) << 18;
    r.shift = uint32_t(random64() % 128);
    r.level = int64_t(std::clamp<Wide>(floored(Wide(r.acc) * multiplier + used, shift), -4096, 4096));
  } else if (kind == kOnce || kind == kTwice) {
    const int cut = random64() % 2 ? int(between(0, 30)) : 0;
    const int64_t multiplier = std::max<int64_t>(between(int64_t(1) << 30, (int64_t(1) << 31) - 1) >> cut << cut, 1 << 30);
    const int t = int(random64() % 2 ? between(28, 50) : between(1, 62));
    int32_t sum = sum_near(multiplier, random64() % 2 && kind == kTwice ? 1 << 30 : 0, t);
    const int left = 31 - t;  // gemmlowp shifts left before, and this must be an int32
    if (kind == kTwice && left > 0) sum >>= left;
    r.level = kind == kOnce ? int64_t(std::clamp<Wide>(floored(Wide(sum) * multiplier + (Wide(1) << (t - 1)), t), -4096, 4096))
                            : std::clamp(divide_by_power(high_product(left > 0 ? int32_t(uint32_t(sum) << left) : sum,
                                                                      int32_t(multiplier)), std::max(-left, 0)), -4096, 4096);
    put_long(r, multiplier, t, sum);
  } else if (kind == kAway) {
    return drawn_away(r);
  } else {
    r.integer = false;
    r.mantissa = uint32_t(between(1 << 23, (1 << 24) - 1));
    r.shift = uint32_t(between(20, 60));
    const int32_t sum = sum_near(r.mantissa, 0, int(r.shift));
    r.bias = int32_t(between(INT32_MIN, INT32_MAX));
    r.acc = int32_t(uint32_t(sum) - uint32_t(r.bias));
    const float scaled = float(sum) * std::ldexp(float(r.mantissa), -int(r.shift));
    r.level = int64_t(std::clamp(std::nearbyint(scaled), -4096.0f, 4096.0f));
  }
  return r;
}

void put(Vtop& top, const Request& r) {
  int at = 0;
  const auto add = [&](uint64_t value, int bits) {
    for (int bit = 0; bit < bits; bit++, at++)
      if (value >> bit & 1) top.request[at / 32] |= uint32_t(1) << at % 32;
  };
  for (int each = 0; each < 5; each++) top.request[each] = 0;
  add(uint32_t(r.acc), 32), add(uint32_t(r.bias), 32), add(r.mantissa, 24), add(r.shift, 7), add(uint8_t(r.zero), 8);
  add(uint8_t(r.low), 8), add(uint8_t(r.high), 8), add(r.integer, 1), add(r.addend, 18);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const Kind kind = Kind(std::atoi(argv[1]));
  const int64_t count = std::atoll(argv[2]);
  state = std::strtoull(argv[3], nullptr, 10);
  auto top = std::make_unique<Vtop>();
  std::deque<Request> due;
  int64_t wrong = 0, received = 0, inside = 0, sent = 0, idle = 0;
  int shift = 0;
  while (received < count) {
    const bool change = sent % 1000 == 0 && !due.empty();  // the shift stays while any sum is on its way
    const bool send = sent < count && !change && random64() % 16;
    if (sent % 1000 == 0 && due.empty()) shift = int(between(0, 63));
    top->shifts = uint8_t(shift);
    top->is_long = kind == kOnce || kind == kTwice || kind == kAway;
    top->twice = kind == kTwice;
    top->given = send;
    if (send) {
      due.push_back(drawn(kind, shift));
      put(*top, due.back());
      sent++;
    }
    top->clk = 0, top->eval();
    top->clk = 1, top->eval();
    idle = top->leaves ? 0 : idle + 1;
    if (idle > 1000) { std::puts("nothing leaves"); return 1; }
    if (!top->leaves) continue;
    const Request r = due.front();
    due.pop_front();
    received++;
    const int64_t expected = std::clamp<int64_t>(r.level + r.zero, r.low, r.high);
    inside += r.low < expected && expected < r.high;
    if (int8_t(top->level) != expected && ++wrong <= 5)
      std::printf("acc %d bias %d mantissa %u shift %u addend %u shifts %d: %d, not %lld\n", r.acc, r.bias, r.mantissa, r.shift,
                  r.addend, shift, int(int8_t(top->level)), (long long)expected);
  }
  std::printf("%lld requantisations, %lld differ, %lld within their bounds\n", (long long)received, (long long)wrong,
              (long long)inside);
  return wrong != 0;
}
