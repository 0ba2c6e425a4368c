// The control pass on the host: the verdict on the window.
#include <limits>

#include "src/backend/canonical_sum.hpp"
#include "src/backend/cpu_backend.hpp"

namespace gradfuse {
namespace {

bool is_finite(double sum_of_squares) { return sum_of_squares <= std::numeric_limits<double>::max(); }

/// The earliest micro-batch that brought a value that is not finite, and the first tensor in it.
void find_nonfinite(const ControlPass& pass) {
  ControlBlock& control = pass.control;
  for (std::uint32_t tensor = 0; tensor < pass.tensor_sums.size(); ++tensor) {
    if (is_finite(pass.tensor_sums[tensor])) continue;
    std::uint32_t micro_batch = pass.first_nonfinite[tensor];
    if (micro_batch == kNoIndex && pass.values.has_pending(tensor)) micro_batch = pass.last_micro_batch;
    if (control.nonfinite_tensor != kNoIndex && micro_batch >= control.nonfinite_micro_batch) continue;
    control.nonfinite_tensor = tensor;
    control.nonfinite_micro_batch = micro_batch;
  }
}

}  // namespace

void CpuBackend::control(const ControlPass& pass) const {
  ControlBlock& control = pass.control;
  control = {StepOutcome::kEmptyTotal, 0.0, 1.0, 0.0, kNoIndex, kNoIndex};
  if (!(pass.total_count > 0.0)) return;
  control.norm = element::gradient_norm(canonical_sum(pass.tensor_sums), pass.loss_scale, pass.total_count);
  control.clip_coef = element::clip_coefficient(control.norm, pass.max_norm);
  control.grad_scale = control.clip_coef / (pass.loss_scale * pass.total_count);
  if (!element::fits_float(control.norm) || !element::fits_float(control.grad_scale)) {
    control.outcome = StepOutcome::kNonFinite;
    control.clip_coef = 1.0;
    find_nonfinite(pass);
    return;
  }
  control.outcome = StepOutcome::kApplied;
  for (std::size_t tensor = 0; tensor < pass.step_counts.size(); ++tensor) {
    if (!pass.values.is_absent(tensor)) ++pass.step_counts[tensor];
  }
}

}  // namespace gradfuse
