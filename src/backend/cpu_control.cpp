// The control pass on the host: the verdict on the window, and each tensor's coefficients.
#include <algorithm>

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
    if (micro_batch == kNoIndex && !pass.slots[tensor].pending.is_absent()) micro_batch = pass.last_micro_batch;
    if (control.nonfinite_tensor != kNoIndex && micro_batch >= control.nonfinite_micro_batch) continue;
    control.nonfinite_tensor = tensor;
    control.nonfinite_micro_batch = micro_batch;
  }
}

/// Neighbours mostly share group and step count, so the powers and roots are worked out once for a run of them.
template <class Coefs, class Compute>
void fill_coefs(const ControlPass& pass, std::span<Coefs> coefs, Compute compute) {
  std::size_t known = coefs.size();
  for (std::size_t tensor = 0; tensor < coefs.size(); ++tensor) {
    if (pass.slots[tensor].is_absent()) continue;
    const bool is_known = known < coefs.size() && pass.group_of[known] == pass.group_of[tensor] &&
                          pass.step_counts[known] == pass.step_counts[tensor];
    coefs[tensor] = is_known ? coefs[known] : compute(pass.group_of[tensor], pass.step_counts[tensor]);
    known = tensor;
  }
}

}  // namespace

void CpuBackend::control(const ControlPass& pass) const {
  const double norm = element::gradient_norm(canonical_sum(pass.tensor_sums), pass.loss_scale, pass.total_count);
  const double clip_coef = element::clip_coefficient(norm, pass.max_norm);
  const double grad_scale = clip_coef / (pass.loss_scale * pass.total_count);
  pass.control = {StepOutcome::kApplied, norm, clip_coef, kNoIndex, kNoIndex};
  if (!(pass.total_count > 0.0)) {
    pass.control = {StepOutcome::kEmptyTotal, 0.0, 1.0, kNoIndex, kNoIndex};
    return;
  }
  if (!element::fits_float(norm) || !element::fits_float(grad_scale)) {
    pass.control.outcome = StepOutcome::kNonFinite;
    find_nonfinite(pass);
    return;
  }
  for (std::size_t tensor = 0; tensor < pass.slots.size(); ++tensor) {
    if (!pass.slots[tensor].is_absent()) ++pass.step_counts[tensor];
  }
  if (const auto* adam = std::get_if<AdamControl>(&pass.rule)) {
    fill_coefs(pass, adam->coefs, [&](std::uint32_t group, std::int64_t step) {
      return element::adam_coefs(adam->groups[group], step, grad_scale);
    });
  } else {
    const auto& sgd = std::get<SgdControl>(pass.rule);
    fill_coefs(pass, sgd.coefs,
               [&](std::uint32_t group, std::int64_t) { return element::sgd_coefs(sgd.groups[group], grad_scale); });
  }
}

}  // namespace gradfuse
