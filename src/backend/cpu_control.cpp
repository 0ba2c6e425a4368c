// The control pass on the host: the verdict on the window.
#include <algorithm>
#include <limits>

#include "src/backend/canonical_sum.hpp"
#include "src/backend/cpu_backend.hpp"

namespace gradfuse {
namespace {

bool is_finite(double sum_of_squares) { return sum_of_squares <= std::numeric_limits<double>::max(); }

/// The earliest micro-batch that brought a value that is not finite, and the first tensor in it.
void find_nonfinite(const Values& values, const ControlPass& pass) {
  ControlBlock& control = *pass.control;
  for (std::uint32_t tensor = 0; tensor < pass.is_claimed.size(); ++tensor) {
    if (is_finite(pass.sums.by_tensor[tensor])) continue;
    std::uint32_t micro_batch = pass.first_nonfinite[tensor] - 1;
    if (micro_batch == kNoIndex && values.has_pending(tensor)) micro_batch = pass.last_micro_batch;
    if (control.nonfinite_tensor != kNoIndex && micro_batch >= control.nonfinite_micro_batch) continue;
    control.nonfinite_tensor = tensor;
    control.nonfinite_micro_batch = micro_batch;
  }
  // What a producer wrote by itself nobody looked at in between.
  const bool is_unseen = control.nonfinite_tensor != kNoIndex && pass.is_claimed[control.nonfinite_tensor] != 0;
  if (is_unseen) control.nonfinite_micro_batch = kNoIndex;
}

}  // namespace

void CpuBackend::control(const Values& values, const ControlPass& pass) const {
  const std::size_t num_tensors = pass.is_claimed.size();
  fold_sums(values.table, pass.sums);
  const double sum = canonical_sum({pass.sums.by_tensor, num_tensors});
  const float loss_scale = pass.loss_scale == nullptr ? 1.0f : pass.loss_scale->scale;
  *pass.control = element::judge(sum, loss_scale, pass.total_count, pass.max_norm);
  const StepOutcome outcome = pass.control->outcome;
  if (outcome == StepOutcome::kNonFinite) find_nonfinite(values, pass);
  if (outcome == StepOutcome::kApplied) {
    for (std::size_t tensor = 0; tensor < num_tensors; ++tensor) {
      if (!values.is_absent(tensor)) ++pass.step_counts[tensor];
    }
  }
  // A window with nothing to divide by says nothing about the loss scale.
  if (pass.loss_scale_rule != nullptr && outcome != StepOutcome::kEmptyTotal) {
    *pass.loss_scale =
        element::next_loss_scale(*pass.loss_scale, *pass.loss_scale_rule, outcome == StepOutcome::kNonFinite);
  }
  std::fill_n(pass.first_nonfinite, num_tensors, 0u);
}

}  // namespace gradfuse
