#include "src/train/divergence.hpp"

#include <fmt/format.h>
#include <gradfuse/error.hpp>

#include <cmath>

namespace gradfuse::train {
namespace {

/// "the gradient of layer0.weight (tensor 0) in micro-batch 2 of step 7"
std::string culprit(const StepRecord& skipped) {
  std::string text = "the gradients";
  if (!skipped.non_finite_tensor.empty()) {
    text = fmt::format("the gradient of {} (tensor {})", skipped.non_finite_tensor, *skipped.report.non_finite->tensor);
  }
  if (skipped.report.non_finite && skipped.report.non_finite->micro_batch) {
    text += fmt::format(" in micro-batch {}", *skipped.report.non_finite->micro_batch);
  }
  return text + fmt::format(" of step {}", skipped.step);
}

}  // namespace

void DivergenceWatch::check_step(const StepRecord& record, const LossScaler& scaler) {
  is_any_loss_finite_ = is_any_loss_finite_ || std::isfinite(record.loss);
  if (!record.report.is_skipped()) return;
  last_skipped_ = record;
  const bool has_backed_off = scaler.scale() < record.report.loss_scale;
  if (scaler.is_dynamic() && !has_backed_off) fail(fmt::format("the loss scale is at its floor, {}", scaler.scale()));
}

void DivergenceWatch::check_epoch(const EpochRecord& epoch, const LossScaler& scaler) const {
  if (epoch.skipped_steps < epoch.steps || (scaler.is_dynamic() && is_any_loss_finite_)) return;
  fail(fmt::format("every step of epoch {} was skipped", epoch.epoch));
}

void DivergenceWatch::fail(const std::string& what) const {
  const StepRecord& skipped = last_skipped_;
  const bool has_fixed_scale = !options_.loss_scaler.is_dynamic() && skipped.report.loss_scale > 1.0f;
  throw Error(fmt::format(
      "training has diverged: {}, and {} (loss {}) has values that are not finite. Try a lower lr "
      "(now {}){}{}{}",
      what, culprit(skipped), std::abs(skipped.loss), skipped.lr, options_.max_grad_norm ? "" : ", max_grad_norm 1",
      has_fixed_scale ? ", a dynamic or a lower loss_scale" : "",
      options_.precision == DType::kFloat16 ? ", or precision bfloat16" : ""));
}

}  // namespace gradfuse::train
