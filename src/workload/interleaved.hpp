#pragma once
// Timing things that are to be compared: in turn, so that a machine that slows down slows all of them.
#include <gradfuse/backend.hpp>

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace gradfuse::workload {

struct TimingBudget {
  std::size_t min_rounds = 3;
  double seconds = 1.0;  ///< Rounds go on until this has passed.
};

/// Runs all variants once untimed, then in turn, round after round. Returns the shortest time of each, in seconds, as
/// the backend's device took it: noise only ever adds.
std::vector<double> fastest_of_each(std::span<const std::function<void()>> variants, const TimingBudget& budget,
                                    const Backend& backend);

}  // namespace gradfuse::workload
