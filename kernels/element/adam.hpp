// Adam and AdamW: Kingma & Ba 2015 (arXiv:1412.6980), Loshchilov & Hutter 2019 (arXiv:1711.05101), amsgrad by Reddi et
// al. 2018; the order of operations follows torch.optim. Included per SIMD target: no guard, no includes.

/// The factors of one step of one tensor: formed in FP64 by `adam_coefs`, rounded once.
template <class F>
struct AdamCoefs {
  F grad_scale;  // negative when the objective is maximised
  F one_minus_beta1;
  F beta2;
  F one_minus_beta2;
  F inv_sqrt_bias_correction2;
  F eps;
  F neg_step_size;  // -lr / bias_correction1
  F decay;          // decoupled: 1 - lr * weight_decay; else 1
  F weight_decay;   // L2: added to the gradient; else unused
};

/// `grad` is the accumulated value: unscaled, clipped and normalised here by `grad_scale`.
template <bool kL2, bool kAmsgrad, class F>
GF_ELEMENT void adam_update(F grad, F& param, F& exp_avg, F& exp_avg_sq, F& max_exp_avg_sq, const AdamCoefs<F>& c) {
  grad = grad * c.grad_scale;
  if constexpr (kL2) grad = fma(c.weight_decay, param, grad);
  exp_avg = fma(c.one_minus_beta1, grad - exp_avg, exp_avg);
  exp_avg_sq = fma(c.one_minus_beta2 * grad, grad, c.beta2 * exp_avg_sq);
  F second_moment = exp_avg_sq;
  if constexpr (kAmsgrad) {
    max_exp_avg_sq = max(max_exp_avg_sq, exp_avg_sq);
    second_moment = max_exp_avg_sq;
  }
  const F denom = fma(sqrt(second_moment), c.inv_sqrt_bias_correction2, c.eps);
  param = fma(c.neg_step_size, exp_avg / denom, c.decay * param);
}
