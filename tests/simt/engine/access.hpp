#pragma once
// What the engine tells the checks of memory accesses.
#include <cstddef>

#include "engine/grid.hpp"

namespace simt {

void begin_launch(const GridShape& shape);
void end_launch();
/// All threads of the block have met: what came before is ordered before what comes after.
void passed_barrier(unsigned block);
/// Threads of a warp have met; only a __syncwarp orders memory.
void passed_warp_op(unsigned block, unsigned warp, unsigned mask);
void passed_warp_sync(unsigned block, unsigned warp);
void made_shared_memory(unsigned block, const void* data, std::size_t num_bytes);

}  // namespace simt
