#include "src/workload/interleaved.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

namespace gradfuse::workload {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

std::vector<double> fastest_of_each(std::span<const std::function<void()>> variants, const TimingBudget& budget) {
  for (const auto& variant : variants) variant();
  std::vector<double> fastest(variants.size(), std::numeric_limits<double>::infinity());
  const auto begin = Clock::now();
  for (std::size_t round = 0; round < budget.min_rounds || seconds_since(begin) < budget.seconds; ++round) {
    for (std::size_t v = 0; v < variants.size(); ++v) {
      const auto start = Clock::now();
      variants[v]();
      fastest[v] = std::min(fastest[v], seconds_since(start));
    }
  }
  return fastest;
}

}  // namespace gradfuse::workload
