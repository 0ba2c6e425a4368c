#include <gradfuse/train/compare_large_batch.hpp>

#include <fmt/format.h>
#include <gradfuse/error.hpp>

#include "src/train/epoch_order.hpp"
#include "src/train/mlp_trainer.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace gradfuse::train {
namespace {

std::vector<float> elements(const ParameterSet& params, std::size_t tensor) {
  std::vector<float> values(params[tensor].param.numel);
  copy_to_host(*params.backend(), params[tensor].param, values.data());
  return values;
}

/// std::max would drop a NaN on one side.
double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }

void measure(const ParameterSet& params, const ParameterSet& others, LargeBatchDifference& difference) {
  double sum_squares = 0, difference_squares = 0;
  for (std::size_t tensor = 0; tensor < params.size(); ++tensor) {
    const std::vector<float> a = elements(params, tensor), b = elements(others, tensor);
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double delta = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
      difference.max_abs = larger(delta, difference.max_abs);
      difference_squares += delta * delta;
      sum_squares += static_cast<double>(b[i]) * static_cast<double>(b[i]);
    }
  }
  difference.relative = std::sqrt(difference_squares / sum_squares);
}

}  // namespace

void check_comparison(const MlpTrainOptions& options, const nn::DigitsSplit& data) {
  check_options(options, data);
  const std::size_t num_rows = data.train.num_rows();
  if (options.precision != DType::kFloat32) {
    throw Error(fmt::format("the comparison with a large batch is one of float32; precision is {}",
                            dtype_name(options.precision)));
  }
  if (options.norm == nn::Norm::kBatch) {
    throw Error(
        "batch normalisation takes its statistics from the micro-batch, so a large batch gives other parameters; "
        "compare with norm none or layer");
  }
  if (options.accum_steps == 1 || options.micro_batch >= num_rows) {
    throw Error(
        fmt::format("a window has one micro-batch only (accum_steps {}, micro_batch {}, {} training rows), so "
                    "there is nothing to compare; take accum_steps 2 or more",
                    options.accum_steps, options.micro_batch, num_rows));
  }
}

LargeBatchDifference compare_large_batch(const MlpTrainOptions& options, const nn::DigitsSplit& data,
                                         const std::function<void(const LargeBatchDifference&)>& on_epoch) {
  check_comparison(options, data);
  const std::size_t num_rows = data.train.num_rows();
  MlpTrainOptions large = options;
  large.micro_batch = rows_per_window(options, num_rows);
  large.accum_steps = 1;
  MlpTrainer in_micro_batches(options, data), in_large_batches(large, data);
  EpochOrder order(num_rows, options.seed);
  LargeBatchDifference worst;
  for (std::size_t epoch = 1; epoch <= options.epochs; ++epoch) {
    const std::span<const std::size_t> rows = order.next();
    const EpochRecord record = in_micro_batches.run_epoch(rows, {});
    in_large_batches.run_epoch(rows, {});
    LargeBatchDifference difference{.epoch = epoch, .steps = epoch * record.steps, .loss = record.loss};
    measure(in_micro_batches.params(), in_large_batches.params(), difference);
    if (on_epoch) on_epoch(difference);
    difference.max_abs = larger(worst.max_abs, difference.max_abs);
    difference.relative = larger(worst.relative, difference.relative);
    worst = difference;
  }
  return worst;
}

}  // namespace gradfuse::train
