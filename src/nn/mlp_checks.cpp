#include "src/nn/mlp_checks.hpp"

#include <fmt/core.h>
#include <gradfuse/error.hpp>

#include <cmath>
#include <cstddef>

namespace gradfuse::nn {
namespace {

constexpr std::size_t kMaxWidth = std::size_t{1} << 24;  // products of two widths and any row count stay in 64 bits

void check_widths(std::span<const std::size_t> widths) {
  if (widths.size() < 2) {
    throw Error(fmt::format("MlpOptions::widths: {} entries; expected inputs, hidden layers and classes (2 or more)",
                            widths.size()));
  }
  for (std::size_t i = 0; i < widths.size(); ++i) {
    if (widths[i] == 0 || widths[i] > kMaxWidth) {
      throw Error(fmt::format("MlpOptions::widths[{}]: {}; expected 1..{}", i, widths[i], kMaxWidth));
    }
  }
}

void check_features(std::span<const float> features, std::size_t rows, std::size_t inputs) {
  if (features.size() % inputs != 0 || features.size() / inputs != rows) {
    throw Error(fmt::format("features: {} elements beside {} labels; expected {} for each row, the model's inputs",
                            features.size(), rows, inputs));
  }
  for (std::size_t i = 0; i < features.size(); ++i) {
    if (!std::isfinite(features[i])) {
      throw Error(fmt::format("features: row {}, column {} is {}; expected a finite number", i / inputs, i % inputs,
                              features[i]));
    }
  }
}

void check_labels(std::span<const std::int32_t> labels, std::size_t classes) {
  for (std::size_t r = 0; r < labels.size(); ++r) {
    if (labels[r] < 0 || static_cast<std::size_t>(labels[r]) >= classes) {
      throw Error(fmt::format("labels: row {} is {}; expected 0..{}", r, labels[r], classes - 1));
    }
  }
}

}  // namespace

void check_options(const MlpOptions& options) {
  check_widths(options.widths);
  if (options.precision == DType::kFloat64) {
    throw Error("MlpOptions::precision: float64; expected float32, float16 or bfloat16");
  }
  if (options.backend == nullptr) throw Error("MlpOptions::backend is null; make one with cpu_backend()");
  if (options.micro_batches_per_window == 0) {
    throw Error("MlpOptions::micro_batches_per_window: 0; expected 1 or more");
  }
}

void check_batch(const MlpOptions& options, Mode mode, std::span<const float> features,
                 std::span<const std::int32_t> labels) {
  if (labels.empty()) throw Error("labels: the micro-batch has no rows; expected 1 or more");
  check_features(features, labels.size(), options.widths.front());
  check_labels(labels, options.widths.back());
  const bool needs_variance = mode == Mode::kTraining && options.norm == Norm::kBatch && options.widths.size() > 2;
  if (needs_variance && labels.size() == 1) {
    throw Error(
        "labels: 1 row; batch normalisation needs 2 or more in training. Use larger micro-batches or Norm::kLayer");
  }
}

void check_loss_scale(float loss_scale) {
  if (!(std::isfinite(loss_scale) && loss_scale > 0.0f)) {
    throw Error(fmt::format("loss_scale: {}; expected a positive finite number", loss_scale));
  }
}

}  // namespace gradfuse::nn
