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

/// Calls `body(run, numel)` for each run of `range`, in parallel as above. A run is a chunk, or those of several
/// tensors, each of which `is_joined(tensor)` says to follow the one before.
template <class IsJoined, class Body>
void for_each_run(const WorkTable& table, ChunkRange range, int num_threads, IsJoined is_joined, Body body) {
  for_each_part(table, range, num_threads, [chunks = table.chunks(), is_joined, body](ChunkRange part) mutable {
    for (std::size_t begin = part.begin, end; begin < part.end; begin = end) {
      std::int64_t numel = chunks[begin].numel;
      for (end = begin + 1; end < part.end; ++end) {
        const Chunk& next = chunks[end];
        if (numel + next.numel > kChunkSize || next.tensor != chunks[end - 1].tensor + 1) break;
        if (!is_joined(next.tensor)) break;
        numel += next.numel;
      }
      body(chunks.subspan(begin, end - begin), static_cast<std::size_t>(numel));
    }
  });
}

}  // namespace gradfuse
