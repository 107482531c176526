// What the queues of a build with upsets call in every cycle.
#include "upset.h"

Upset& upset() {
  static Upset chosen{UINT64_MAX, 0, 0};
  return chosen;
}

// The bit of this queue, which has so many, that turns over now; -1 for none.
extern "C" int tilewright_upset(int queue, int bits) {
  const Upset& chosen = upset();
  if (chosen.cycle != chosen.at || static_cast<uint64_t>(queue) != chosen.queue) return -1;
  return static_cast<int>(chosen.bit % static_cast<uint64_t>(bits));
}
