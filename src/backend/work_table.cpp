#include "src/backend/work_table.hpp"

#include <algorithm>

namespace gradfuse {
namespace {
// Turning to a chunk takes about as long as this many of its elements.
constexpr std::int64_t kChunkOverhead = 64;
}  // namespace

WorkTable::WorkTable(std::span<const std::size_t> numels) : first_chunk_{0}, cost_before_{0} {
  for (std::size_t tensor = 0; tensor < numels.size(); ++tensor) {
    const auto numel = static_cast<std::int64_t>(numels[tensor]);
    for (std::int64_t begin = 0; begin < numel; begin += kChunkSize) {
      const std::int64_t in_chunk = std::min(kChunkSize, numel - begin);
      chunks_.push_back({begin, static_cast<std::uint32_t>(tensor), static_cast<std::uint32_t>(in_chunk)});
      cost_before_.push_back(cost_before_.back() + in_chunk + kChunkOverhead);
    }
    if (numel > kChunkSize) multi_chunk_tensors_.push_back(static_cast<std::uint32_t>(tensor));
    first_chunk_.push_back(chunks_.size());
    numel_ += numel;
  }
}

ChunkRange WorkTable::part(ChunkRange range, std::size_t thread, std::size_t num_threads) const {
  return {boundary(range, thread, num_threads), boundary(range, thread + 1, num_threads)};
}

std::size_t WorkTable::boundary(ChunkRange range, std::size_t thread, std::size_t num_threads) const {
  const auto first = cost_before_.begin() + static_cast<std::ptrdiff_t>(range.begin);
  const auto last = cost_before_.begin() + static_cast<std::ptrdiff_t>(range.end);
  const double share = static_cast<double>(thread) / static_cast<double>(num_threads);
  const auto cost = *first + static_cast<std::int64_t>(static_cast<double>(*last - *first) * share);
  return static_cast<std::size_t>(std::lower_bound(first, last, cost) - cost_before_.begin());
}

}  // namespace gradfuse
