#pragma once
// The order in which an epoch visits the rows.
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace gradfuse::train {

/// Fisher-Yates on mt19937_64: `std::shuffle` draws differently in each standard library, this does not. The bias of
/// the remainder is below rows / 2^64.
class EpochOrder {
 public:
  // The model draws its weights from the plain seed; the same stream here would tie the order to them.
  EpochOrder(std::size_t num_rows, std::uint64_t seed) : order_(num_rows), random_(seed ^ 0x9e3779b97f4a7c15u) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
  }

  /// The rows in a new order, each once. Valid until the next call.
  std::span<const std::size_t> next() {
    for (std::size_t left = order_.size(); left > 1; --left) {
      std::swap(order_[left - 1], order_[static_cast<std::size_t>(random_() % left)]);
    }
    return order_;
  }

 private:
  std::vector<std::size_t> order_;
  std::mt19937_64 random_;
};

}  // namespace gradfuse::train
