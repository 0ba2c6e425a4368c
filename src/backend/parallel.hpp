#pragma once
// One parallel region over a part of a work table, statically divided.
#include <omp.h>

#include <cstddef>

#include "src/backend/work_table.hpp"

namespace gradfuse {

/// Calls `body(part)` on at most `num_threads` threads, each with its part of `range`. `body` does not throw; each
/// thread has its own copy of it, and so of what it keeps by value.
template <class Body>
void for_each_part(const WorkTable& table, ChunkRange range, int num_threads, Body body) {
  // A region costs microseconds, and much more where threads must wait for a processor: a second thread has to save
  // that.
  constexpr std::int64_t kWorthAThread = std::int64_t{32} << 10;
  const bool is_small = table.cost_of(range) < kWorthAThread;
#pragma omp parallel num_threads(num_threads) if (!is_small) firstprivate(body)
  body(table.part(range, static_cast<std::size_t>(omp_get_thread_num()),
                  static_cast<std::size_t>(omp_get_num_threads())));
}

/// Calls `body(chunk, index)` for each chunk of `range`, in parallel as above.
template <class Body>
void for_each_chunk(const WorkTable& table, ChunkRange range, int num_threads, Body body) {
  for_each_part(table, range, num_threads, [chunks = table.chunks(), body](ChunkRange part) mutable {
    for (std::size_t index = part.begin; index < part.end; ++index) body(chunks[index], index);
  });
}

/// Calls `body(run, numel)` for each run of `range`, in parallel as above. A run is a chunk, or several small ones that
/// `continues(previous, next)` finds next to each other in memory: to work through a thousand small tensors of one
/// array costs hardly more than one large tensor, where order does not matter.
template <class Continues, class Body>
void for_each_run(const WorkTable& table, ChunkRange range, int num_threads, Continues continues, Body body) {
  for_each_part(table, range, num_threads, [chunks = table.chunks(), continues, body](ChunkRange part) mutable {
    for (std::size_t begin = part.begin, end; begin < part.end; begin = end) {
      std::int64_t numel = chunks[begin].numel;
      for (end = begin + 1; end < part.end; ++end) {
        if (numel + chunks[end].numel > kChunkSize || !continues(chunks[end - 1], chunks[end])) break;
        numel += chunks[end].numel;
      }
      body(chunks.subspan(begin, end - begin), static_cast<std::size_t>(numel));
    }
  });
}

}  // namespace gradfuse
