#pragma once
// A random order that is the same with every standard library.
#include <cstddef>
#include <random>
#include <span>
#include <utility>

namespace gradfuse::nn {

/// Fisher-Yates. `std::shuffle` and the standard's distributions differ between libraries; the bits of mt19937_64 are
/// the same everywhere, and the bias of the remainder is below size / 2^64.
inline void shuffle(std::span<std::size_t> order, std::mt19937_64& random) {
  for (std::size_t left = order.size(); left > 1; --left) {
    std::swap(order[left - 1], order[static_cast<std::size_t>(random() % left)]);
  }
}

}  // namespace gradfuse::nn
