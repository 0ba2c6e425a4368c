#pragma once
// The unit of work of every pass, on every machine.
#include <cstddef>
#include <cstdint>

namespace gradfuse {

/// Elements of a chunk. Sums are formed chunk by chunk, so this number is part of the results' bits.
inline constexpr std::int64_t kChunkSize = 4096;

struct Chunk {
  std::int64_t begin;  // first element, in the tensor
  std::uint32_t tensor;
  std::uint32_t numel;
};

struct ChunkRange {
  std::size_t begin, end;
};

}  // namespace gradfuse
