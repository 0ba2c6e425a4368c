#include "src/workload/windows.hpp"

#include <fmt/format.h>

#include <gradfuse/error.hpp>

namespace gradfuse::workload {
namespace {

void check_measured(const StepReport& report) {
  if (!report.is_skipped() && report.clip_coef < 1.0) return;
  throw Error(fmt::format("the benchmark's window {} was {} (norm {}): its time would mean nothing", report.window,
                          report.is_skipped() ? "skipped" : "not clipped", report.norm));
}

}  // namespace

FusedWindow::FusedWindow(const SyntheticModel& model, std::size_t micro_batches)
    : model_(model),
      window_(model.params(), {.steps = micro_batches}),
      optimizer_(model.params()),
      scaler_(LossScaler::fixed(SyntheticModel::kLossScale)) {}

void FusedWindow::run() {
  for (std::size_t m = 0; m < window_.options().steps; ++m) window_.add(model_.grads());
  optimizer_.step(window_, {.max_grad_norm = SyntheticModel::kMaxGradNorm, .scaler = &scaler_});
}

const StepReport& FusedWindow::checked_report() const {
  const StepReport& report = optimizer_.last_report();
  check_measured(report);
  return report;
}

UnfusedWindow::UnfusedWindow(const SyntheticModel& model, std::size_t micro_batches)
    : model_(model),
      micro_batches_(micro_batches),
      chain_(model.params(), AdamWOptions{}),
      scaler_(LossScaler::fixed(SyntheticModel::kLossScale)) {}

void UnfusedWindow::run() {
  for (std::size_t m = 0; m < micro_batches_; ++m) chain_.add(model_.grads());
  report_ = chain_.step({.max_grad_norm = SyntheticModel::kMaxGradNorm, .scaler = &scaler_});
}

const StepReport& UnfusedWindow::checked_report() const {
  check_measured(report_);
  return report_;
}

std::size_t windows_num_bytes(std::size_t numel, const ModelOptions& options) {
  constexpr std::size_t kParam = 4, kAccumulatorAndMoments = 12, kWindows = 2;
  const std::size_t model = options.model_dtype ? element_size(*options.model_dtype) : 0;
  return numel * (kParam + model + element_size(options.grad_dtype) + kWindows * kAccumulatorAndMoments);
}

}  // namespace gradfuse::workload
