#pragma once
// One parallel region over a part of a work table, statically divided.
#include <omp.h>

#include <cstddef>

#include "src/backend/work_table.hpp"

namespace gradfuse {

/// Calls `body(chunk, index)` for each chunk of `range`, on at most `num_threads` threads. `body` does not throw; each
/// thread has its own copy of it, and so of what it keeps by value.
template <class Body>
void for_each_chunk(const WorkTable& table, ChunkRange range, int num_threads, Body body) {
  const auto chunks = table.chunks();
  // A region costs microseconds, and much more where threads must wait for a processor: a second thread has to save
  // that.
  constexpr std::int64_t kWorthAThread = 32 * 1024;
  const bool is_small = table.cost_of(range) < kWorthAThread;
#pragma omp parallel num_threads(num_threads) if (!is_small) firstprivate(body)
  {
    const auto part = table.part(range, static_cast<std::size_t>(omp_get_thread_num()),
                                 static_cast<std::size_t>(omp_get_num_threads()));
    for (std::size_t index = part.begin; index < part.end; ++index) body(chunks[index], index);
  }
}

}  // namespace gradfuse
