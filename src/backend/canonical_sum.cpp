#include "src/backend/canonical_sum.hpp"

#include <algorithm>
#include <array>

#include "src/backend/work_table.hpp"

namespace gradfuse {
namespace {
constexpr std::size_t kSumLanes = 256;

double fold_chunk(std::span<const double> values) {
  if (values.size() == 1) return values[0];
  std::array<double, kSumLanes> lanes{};
  for (std::size_t row = 0; row < values.size(); row += kSumLanes) {
    const std::size_t in_row = std::min(kSumLanes, values.size() - row);
    for (std::size_t l = 0; l < in_row; ++l) lanes[l] += values[row + l];
  }
  for (std::size_t half = kSumLanes / 2; half > 0; half /= 2) {
    for (std::size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  return lanes[0];
}
}  // namespace

double canonical_sum(std::span<const double> values) {
  constexpr auto kChunk = static_cast<std::size_t>(kChunkSize);
  if (values.empty()) return 0.0;
  if (values.size() <= kChunk) return fold_chunk(values);
  std::size_t block = kChunk;  // from the top down, so that no memory is needed: the same tree as from the bottom up
  while (values.size() > block * kChunk) block *= kChunk;
  std::array<double, kChunk> sums;
  std::size_t num_sums = 0;
  for (std::size_t begin = 0; begin < values.size(); begin += block) {
    sums[num_sums++] = canonical_sum(values.subspan(begin, std::min(block, values.size() - begin)));
  }
  return fold_chunk(std::span(sums).first(num_sums));
}

}  // namespace gradfuse
