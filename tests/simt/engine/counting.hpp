#pragma once
// Counting what a launch moves.
#include <cstddef>

#include "engine/grid.hpp"

namespace simt {

void begin_counting(const char* kernel);
void end_counting();
void count_access(const RunningThread& thread, const void* address, std::size_t num_bytes, bool is_store);
void count_atomic();
void lanes_have_met(unsigned block, unsigned warp);

}  // namespace simt
