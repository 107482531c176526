// Toggles of the coprocessor's blocks, as activity.sv notes them; none unless the simulator was built to count them.
#pragma once

#include <cstdint>
#include <vector>

// Sums since reset: one row for each status record and one for the end, one column for each block.
const std::vector<std::vector<uint64_t>>& noted_toggles();
