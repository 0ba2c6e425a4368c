#include "src/core/check_window.hpp"

#include <fmt/format.h>

#include <cmath>
#include <gradfuse/error.hpp>
#include <limits>

namespace gradfuse {

bool is_total(double value) {
  return value >= std::numeric_limits<float>::min() && value <= std::numeric_limits<float>::max();
}

void check_micro_batch(const MicroBatch& micro_batch, double sum_of_counts) {
  const double weight = micro_batch.weight, count = micro_batch.count.value_or(weight);
  if (!(weight >= 0.0 && std::isfinite(static_cast<float>(weight)))) {
    throw Error(fmt::format("micro-batch weight is {}; it must be at least 0 and finite in float32", weight));
  }
  if (weight > 0.0 && static_cast<float>(weight) == 0.0f) {
    throw Error(fmt::format("micro-batch weight {} is 0 in float32; scale the weights up", weight));
  }
  if (!is_total(count) && count != 0.0) {
    throw Error(fmt::format("micro-batch count is {}; it must be 0, or positive and within float32's range", count));
  }
  if (!is_total(sum_of_counts + count) && count != 0.0) {
    throw Error(fmt::format(
        "micro-batch count {} takes the window's total out of float32's range; scale the counts down", count));
  }
}

void check_step(std::size_t micro_batches, const StepOptions& options) {
  if (micro_batches == 0) throw Error("the window holds no micro-batch; add one before the step");
  if (options.max_grad_norm && !(*options.max_grad_norm >= 0.0)) {
    throw Error(fmt::format("max_grad_norm is {}; it must be at least 0", *options.max_grad_norm));
  }
}

}  // namespace gradfuse
