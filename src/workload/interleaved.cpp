#include "src/workload/interleaved.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>

#include "src/backend/backend.hpp"

namespace gradfuse::workload {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

std::vector<double> fastest_of_each(std::span<const std::function<void()>> variants, const TimingBudget& budget,
                                    const Backend& backend) {
  const std::unique_ptr<Stopwatch> stopwatch = backend.make_stopwatch();
  for (const auto& variant : variants) variant();
  std::vector<double> fastest(variants.size(), std::numeric_limits<double>::infinity());
  const auto begin = Clock::now();
  for (std::size_t round = 0; round < budget.min_rounds || seconds_since(begin) < budget.seconds; ++round) {
    for (std::size_t v = 0; v < variants.size(); ++v) {
      stopwatch->start();
      variants[v]();
      fastest[v] = std::min(fastest[v], stopwatch->stop());
    }
  }
  return fastest;
}

}  // namespace gradfuse::workload
