#include <fmt/format.h>
#include <gradfuse/error.hpp>
#include <gradfuse/train/train_mlp.hpp>

#include <cmath>
#include <string_view>
#include <variant>

namespace gradfuse::train {
namespace {

void check_count(std::string_view name, std::size_t count) {
  if (count == 0) throw Error(fmt::format("{} is 0; it must be at least 1", name));
}

/// Rows of the last micro-batch of an epoch.
std::size_t last_rows(std::size_t num_rows, std::size_t micro_batch) {
  const std::size_t rest = num_rows % micro_batch;
  return rest == 0 ? micro_batch : rest;
}

double base_lr(const MlpTrainOptions& options) {
  return std::visit([](const auto& optimizer) { return optimizer.lr; }, options.optimizer);
}

void check_eps(const UnfusedChain::Options& optimizer) {
  std::visit(
      [](const auto& rule) {
        if constexpr (requires { rule.eps; }) {
          if (rule.eps >= 0.0 && std::isfinite(static_cast<float>(rule.eps))) return;
          throw Error(fmt::format("eps is {}; it must be at least 0 and finite in float32", rule.eps));
        }
      },
      optimizer);
}

}  // namespace

void check_options(const MlpTrainOptions& options, const nn::DigitsSplit& data) {
  check_count("micro_batch", options.micro_batch);
  check_count("accum_steps", options.accum_steps);
  check_count("epochs", options.epochs);
  if (data.train.num_rows() == 0 || data.test.num_rows() == 0) {
    throw Error(fmt::format("{} training and {} test rows; at least 1 of each is needed", data.train.num_rows(),
                            data.test.num_rows()));
  }
  const double lr = base_lr(options), scaled = effective_lr(options, data.train.num_rows());
  if (!(lr > 0.0 && std::isfinite(static_cast<float>(scaled)))) {
    throw Error(fmt::format("lr is {} ({} after scaling); it must be above 0 and finite in float32", lr, scaled));
  }
  check_eps(options.optimizer);
  if (options.max_grad_norm && !(*options.max_grad_norm > 0.0)) {
    throw Error(fmt::format("max_grad_norm is {}; it must be above 0", *options.max_grad_norm));
  }
  if (options.norm == nn::Norm::kBatch && last_rows(data.train.num_rows(), options.micro_batch) == 1) {
    throw Error(
        fmt::format("micro_batch {} leaves one row of {} for the last micro-batch, and batch normalisation needs "
                    "two; choose another micro_batch, or layer normalisation",
                    options.micro_batch, data.train.num_rows()));
  }
}

double effective_lr(const MlpTrainOptions& options, std::size_t num_rows) {
  const double ratio = static_cast<double>(rows_per_window(options, num_rows)) / static_cast<double>(kLrBaseBatch);
  switch (options.lr_scaling) {
    case LrScaling::kNone: return base_lr(options);
    case LrScaling::kLinear: return base_lr(options) * ratio;
    case LrScaling::kSqrt: return base_lr(options) * std::sqrt(ratio);
  }
  throw Error("lr_scaling is none of none, linear, sqrt");
}

std::size_t rows_per_window(const MlpTrainOptions& options, std::size_t num_rows) {
  // The product of the options may be past 2^64; that many micro-batches fill any epoch.
  if (options.accum_steps > num_rows / options.micro_batch) return num_rows;
  return options.micro_batch * options.accum_steps;
}

}  // namespace gradfuse::train
