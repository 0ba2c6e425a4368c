// What one step needs beside the tensors, formed in FP64 and rounded once: norm, clip coefficient, the one factor on
// the gradients, each tensor's coefficients, the next loss scale. Included by scalar.hpp: no guard, no includes.

inline constexpr std::uint32_t kNoIndex = UINT32_MAX;  // no micro-batch, no tensor

/// The verdict on a window.
struct ControlBlock {
  StepOutcome outcome;
  float loss_scale;  // that its gradients carried
  double norm;
  double clip_coef;
  double grad_scale;
  std::uint32_t nonfinite_micro_batch, nonfinite_tensor;  // or kNoIndex
};

/// A norm or factor is of use only if it is finite and FP32 can hold it; NaN is not.
GF_ELEMENT bool fits_float(double value) { return value >= -3.4028234663852886e38 && value <= 3.4028234663852886e38; }

GF_ELEMENT double gradient_norm(double sum_of_squares, double loss_scale, double total_count) {
  return sqrt(sum_of_squares) / (loss_scale * total_count);
}
/// As torch.nn.utils.clip_grad_norm_; `max_norm` infinite: no clipping.
GF_ELEMENT double clip_coefficient(double norm, double max_norm) {
  const double coef = max_norm / (norm + 1e-6);
  return coef > 1.0 ? 1.0 : coef;  // a norm that is NaN stays visible
}

/// All but which value was not finite.
GF_ELEMENT ControlBlock judge(double sum_of_squares, float loss_scale, double total_count, double max_norm) {
  ControlBlock control{StepOutcome::kEmptyTotal, loss_scale, 0.0, 1.0, 0.0, kNoIndex, kNoIndex};
  if (!(total_count > 0.0)) return control;
  control.norm = gradient_norm(sum_of_squares, loss_scale, total_count);
  control.clip_coef = clip_coefficient(control.norm, max_norm);
  control.grad_scale = control.clip_coef / (loss_scale * total_count);
  const bool is_finite = fits_float(control.norm) && fits_float(control.grad_scale);
  control.outcome = is_finite ? StepOutcome::kApplied : StepOutcome::kNonFinite;
  if (!is_finite) control.clip_coef = 1.0;
  return control;
}

struct AdamHyperParameters {
  double lr, beta1, beta2, eps, weight_decay;
  bool is_decoupled, amsgrad, maximize, bias_correction;
  friend bool operator==(const AdamHyperParameters&, const AdamHyperParameters&) = default;
};
/// `step` counts from 1 and includes the step about to be made.
GF_ELEMENT AdamCoefs<float> adam_coefs(const AdamHyperParameters& hyper, std::int64_t step, double grad_scale) {
  const double bias_correction1 = hyper.bias_correction ? 1.0 - ipow(hyper.beta1, step) : 1.0;
  const double bias_correction2 = hyper.bias_correction ? 1.0 - ipow(hyper.beta2, step) : 1.0;
  return {.grad_scale = static_cast<float>(hyper.maximize ? -grad_scale : grad_scale),
          .one_minus_beta1 = static_cast<float>(1.0 - hyper.beta1),
          .beta2 = static_cast<float>(hyper.beta2),
          .one_minus_beta2 = static_cast<float>(1.0 - hyper.beta2),
          .inv_sqrt_bias_correction2 = static_cast<float>(1.0 / sqrt(bias_correction2)),
          .eps = static_cast<float>(hyper.eps),
          .neg_step_size = static_cast<float>(-hyper.lr / bias_correction1),
          .decay = static_cast<float>(hyper.is_decoupled ? 1.0 - hyper.lr * hyper.weight_decay : 1.0),
          .weight_decay = static_cast<float>(hyper.weight_decay)};
}

struct SgdHyperParameters {
  double lr, momentum, dampening, weight_decay;
  bool nesterov, maximize;
  friend bool operator==(const SgdHyperParameters&, const SgdHyperParameters&) = default;
};
GF_ELEMENT SgdCoefs<float> sgd_coefs(const SgdHyperParameters& hyper, double grad_scale) {
  return {.grad_scale = static_cast<float>(hyper.maximize ? -grad_scale : grad_scale),
          .neg_lr = static_cast<float>(-hyper.lr),
          .momentum = static_cast<float>(hyper.momentum),
          .one_minus_dampening = static_cast<float>(1.0 - hyper.dampening),
          .weight_decay = static_cast<float>(hyper.weight_decay)};
}

struct LossScaleRule {
  float growth_factor, backoff_factor, min_scale, max_scale;
  std::int32_t growth_interval;
};
/// The trace of torch.amp.GradScaler, but never below `min_scale`; growth that would pass `max_scale` is not taken.
GF_ELEMENT LossScale next_loss_scale(LossScale state, const LossScaleRule& rule, bool found_nonfinite) {
  if (found_nonfinite) {
    const float backed_off = state.scale * rule.backoff_factor;
    return {backed_off > rule.min_scale ? backed_off : rule.min_scale, 0};
  }
  if (state.growth_tracker + 1 < rule.growth_interval) return {state.scale, state.growth_tracker + 1};
  const float grown = state.scale * rule.growth_factor;
  return {grown <= rule.max_scale ? grown : state.scale, 0};
}
