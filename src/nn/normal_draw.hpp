#pragma once
// Normally distributed numbers that a seed reproduces with any standard library.
#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>

namespace gradfuse::nn {

/// Box-Muller on mt19937_64, whose bits the C++ standard fixes; `std::normal_distribution` is each library's own. What
/// is left to the machine is the last bit of its log and cos in double, far below a float.
class NormalDraw {
 public:
  explicit NormalDraw(std::uint64_t seed) : random_(seed) {}

  /// Mean 0, variance 1.
  double operator()() {
    const double radius = std::sqrt(-2.0 * std::log(uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }

 private:
  /// In (0, 1], in steps of 2^-53: never 0, whose logarithm is infinite.
  double uniform() { return static_cast<double>((random_() >> 11) + 1) * 0x1p-53; }

  std::mt19937_64 random_;
};

}  // namespace gradfuse::nn
