#pragma once
// The order in which an epoch visits the rows.
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "src/nn/shuffle.hpp"

namespace gradfuse::train {

class EpochOrder {
 public:
  // The model draws its weights from the plain seed; the same stream here would tie the order to them.
  EpochOrder(std::size_t num_rows, std::uint64_t seed) : order_(num_rows), random_(seed ^ 0x9e3779b97f4a7c15u) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
  }

  /// The rows in a new order, each once. Valid until the next call.
  std::span<const std::size_t> next() {
    nn::shuffle(order_, random_);
    return order_;
  }

 private:
  std::vector<std::size_t> order_;
  std::mt19937_64 random_;
};

}  // namespace gradfuse::train
