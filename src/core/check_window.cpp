#include "src/core/check_window.hpp"

#include <fmt/format.h>

#include <cmath>
#include <gradfuse/error.hpp>

namespace gradfuse {

void check_micro_batch(const MicroBatch& micro_batch, double sum_of_counts) {
  const double weight = micro_batch.weight, count = micro_batch.count.value_or(weight);
  if (!(weight >= 0.0 && std::isfinite(static_cast<float>(weight)))) {
    throw Error(fmt::format("micro-batch weight is {}; it must be at least 0 and finite in float32", weight));
  }
  if (weight > 0.0 && static_cast<float>(weight) == 0.0f) {
    throw Error(fmt::format("micro-batch weight {} is 0 in float32; scale the weights up", weight));
  }
  if (!(count >= 0.0 && std::isfinite(count))) {
    throw Error(fmt::format("micro-batch count is {}; it must be at least 0 and finite", count));
  }
  if (!std::isfinite(sum_of_counts + count)) {
    throw Error(fmt::format("micro-batch count {} makes the window's total infinite; scale the counts down", count));
  }
}

void check_step(std::size_t micro_batches, const StepOptions& options) {
  if (micro_batches == 0) throw Error("the window holds no micro-batch; add one before the step");
  if (options.max_grad_norm && !(*options.max_grad_norm >= 0.0)) {
    throw Error(fmt::format("max_grad_norm is {}; it must be at least 0", *options.max_grad_norm));
  }
}

}  // namespace gradfuse
