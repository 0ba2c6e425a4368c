#pragma once
// The (tensor, chunk) pairs of a list of tensors: made once, walked by every pass.
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kernels/element/chunk.hpp"

namespace gradfuse {

/// A backend may add what its device needs to walk it.
class WorkTable {
 public:
  explicit WorkTable(std::span<const std::size_t> numels);
  WorkTable(const WorkTable&) = delete;
  WorkTable& operator=(const WorkTable&) = delete;
  virtual ~WorkTable() = default;

  std::span<const Chunk> chunks() const noexcept { return chunks_; }
  std::int64_t numel() const noexcept { return numel_; }
  ChunkRange chunks_of(std::size_t tensor) const { return {first_chunk_[tensor], first_chunk_[tensor + 1]}; }
  /// Elements of the range, and as many more for each chunk as turning to it is worth.
  std::int64_t cost_of(ChunkRange range) const { return cost_before_[range.end] - cost_before_[range.begin]; }
  /// The tensors of more than one chunk.
  std::span<const std::uint32_t> multi_chunk_tensors() const noexcept { return multi_chunk_tensors_; }
  ChunkRange all_chunks() const noexcept { return {0, chunks_.size()}; }

  /// The part of `range` that falls to one of `num_threads`: whole chunks, about the same work each. It depends on
  /// nothing else, so a page stays with its thread from pass to pass.
  ChunkRange part(ChunkRange range, std::size_t thread, std::size_t num_threads) const;

 private:
  std::size_t boundary(ChunkRange range, std::size_t thread, std::size_t num_threads) const;

  std::vector<Chunk> chunks_;
  std::vector<std::size_t> first_chunk_;  // by tensor, and one past the last
  std::vector<std::uint32_t> multi_chunk_tensors_;
  std::vector<std::int64_t> cost_before_;  // by chunk, and the total
  std::int64_t numel_ = 0;
};

}  // namespace gradfuse
